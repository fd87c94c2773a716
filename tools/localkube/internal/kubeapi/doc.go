// Package kubeapi is a client of the API server, as small as localkube needs:
// read, and apply. It avoids client-go so that localkube itself builds in a
// second.
package kubeapi
