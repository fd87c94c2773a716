// Package seal encrypts what leaves a cluster, and opens it again: a thin layer over age
// (https://age-encryption.org). A Key is what a Secret of the user's holds. Its public
// half, the recipient, stands in plain beside all that is sealed to it, so that a wrong key
// is told before anything is read.
//
// The package knows keys and streams. It must not know what is in them, where they lie, or
// how they are laid out: that is up to internal/backup and internal/archive.
//
// To seal is to hide, not to sign: whoever knows the recipient, which is no secret, can
// seal. Only that nobody changed what was sealed is certain.
package seal
