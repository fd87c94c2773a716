// Package judge holds a simulated archive against what was written into it: that a restore ends where
// it was told to, whether parts are merged or not, and that retention takes nothing that a restore
// needs. The simulation of a primary and its replicas uses it, and that of a group. What is restored,
// and what may go, the product's rules tell; nothing here decides. Pure.
package judge
