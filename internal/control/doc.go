// Package control is the API that an instance manager serves to the operator
// and to its peers, over TLS 1.3 with client certificates: wire types, a client
// and a server. It knows how words travel and who may say them; it must not
// know what they lead to.
package control
