// Package client is what kubectl's exec runs in an instance's Pod, where there is
// no shell: the way into the mysql client, without a password in arguments,
// environment or on a disk, and the way to the manager's own word. It knows where
// accounts and certificates lie; it must not know what is asked of MySQL, and it
// decides nothing.
package client
