package store

import "time"

// OpenImpatiently is Open with other limits, for stores that are not directories.
func OpenImpatiently(dir string, silence, trying time.Duration) (Store, error) {
	config, endpoint, err := located(dir)
	if err != nil {
		return nil, err
	}
	return openWithin(limits{silence: silence, trying: trying, pause: 4 * time.Millisecond}, config, endpoint, dir)
}

// OfFile gives the error of a file system its Reason.
func OfFile(err error) error { return because(reasonOfFile(err)) }
