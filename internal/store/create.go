package store

import "errors"

// createOnce is one try of several to write what is not there. It tells an object that is
// there from one that an earlier try wrote, of which the store only failed to say so: once
// writes it with the mark, and look is Exists when there is an object, with its mark.
func createOnce(mark string, once func() error, look func() (string, error)) func() error {
	doubtful := false
	return func() error {
		err := once()
		if doubtful && errors.Is(err, Exists) {
			if its, looked := look(); its == mark {
				return nil
			} else if !errors.Is(looked, Exists) {
				return looked
			}
		}
		doubtful = doubtful || mayRetry(err)
		return err
	}
}
