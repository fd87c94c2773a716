package resources

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
)

func TestAStoreIsKnownByWhatIdentifiesIt(t *testing.T) {
	at := func(change func(*v1alpha1.ObjectStoreSpec)) *v1alpha1.ObjectStoreSpec {
		s := &v1alpha1.ObjectStoreSpec{Bucket: "b", Path: "p", Endpoint: "https://s3.example.com"}
		change(s)
		return s
	}
	key := func(name string) *v1alpha1.SecretKeySelector {
		return &v1alpha1.SecretKeySelector{Name: name, Key: "k"}
	}
	mine := at(func(*v1alpha1.ObjectStoreSpec) {})
	for name, c := range map[string]struct {
		is   *v1alpha1.ObjectStoreSpec
		same bool
	}{
		"a slash":     {at(func(s *v1alpha1.ObjectStoreSpec) { s.Endpoint += "/" }), true},
		"credentials": {at(func(s *v1alpha1.ObjectStoreSpec) { s.Credentials = &v1alpha1.StoreCredentials{} }), true},
		"none":        {nil, false},
		"an endpoint": {at(func(s *v1alpha1.ObjectStoreSpec) { s.Endpoint = "https://other.example.com" }), false},
		"a bucket":    {at(func(s *v1alpha1.ObjectStoreSpec) { s.Bucket = "c" }), false},
		"another cloud": {at(func(s *v1alpha1.ObjectStoreSpec) {
			s.GoogleCredentials = &v1alpha1.GoogleCredentials{}
		}), false},
	} {
		if IsSameStore(mine, c.is) != c.same || IsSameStore(c.is, mine) != c.same {
			t.Errorf("%s: want %t", name, c.same)
		}
	}
	of := func(account string) *v1alpha1.ObjectStoreSpec {
		return at(func(s *v1alpha1.ObjectStoreSpec) {
			s.AzureCredentials = &v1alpha1.AzureCredentials{StorageAccount: key(account)}
		})
	}
	if !IsSameStore(of("a"), of("a")) || IsSameStore(of("a"), of("b")) {
		t.Error("at Azure, the account is not what tells them apart")
	}
}
