package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

func TestOpenRefusesWhatIsWrong(t *testing.T) {
	for config, want := range map[string]string{
		``:                                  "EOF",
		`{"bucket":"bucket","typo":1}`:      `unknown field "typo"`,
		`{"bucket":"bucket"} {}`:            "after the object",
		`{}`:                                `bucket ""`,
		`{"bucket":"a/b"}`:                  `bucket "a/b"`,
		`{"bucket":"x"}`:                    `bucket "x"`,
		`{"bucket":"bucket","path":"/a"}`:   `path "/a"`,
		`{"bucket":"bucket","path":"../a"}`: `path "../a"`,
		`{"bucket":"bucket","endpoint":"minio:9000"}`:                   "is not https://HOST",
		`{"bucket":"bucket","endpoint":"https://h/path"}`:               "has a path",
		`{"bucket":"bucket","endpoint":"https://h?x=y"}`:                "more than a host",
		`{"bucket":"bucket","endpoint":"https://me:pass@h"}`:            "holds a name or a password",
		`{"bucket":"bucket","endpoint":"file://relative/x"}`:            "is not https://HOST",
		`{"bucket":"bucket","serverSideEncryption":"rot13"}`:            "rot13",
		`{"bucket":"bucket","serverSideEncryption":"aws:kms:dsse"}`:     "two layers of encryption",
		`{"bucket":"bucket","serverSideEncryption":"aws:kms:dsse:KEY"}`: "two layers of encryption",
		`{"bucket":"bucket","endpoint":"https://me:pass@h:words"}`:      "not a URL",
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, store.FileConfig), []byte(config), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, store.FileAccessKeyID), []byte(id), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, store.FileSecretKey), []byte(secret), 0o600))
		_, err := store.Open(dir)
		mustFail(t, err, store.Misconfigured)
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pass@") {
			t.Errorf("%s: %v, wanted %q", config, err, want)
		}
	}
}

func TestOpenNeedsCredentialsUnlessThePodHasThem(t *testing.T) {
	_, err := store.Open(t.TempDir())
	mustFail(t, err, store.Misconfigured)
	_, err = store.Open(storetest.Configure(t, store.Config{Bucket: "bucket"},
		map[string]string{store.FileAccessKeyID: id}))
	mustFail(t, err, store.CredentialsWrong)
	_ = open(t, storetest.Configure(t, store.Config{Bucket: "bucket", Ambient: true, Region: "eu-north-1"}, nil))
	_, err = store.Open(storetest.Configure(t, store.Config{Bucket: "bucket", Ambient: true},
		map[string]string{store.FileCA: "no PEM"}))
	mustFail(t, err, store.Misconfigured)
}

func TestAnotherConfigurationIsAnotherStore(t *testing.T) {
	config := store.Config{Endpoint: "https://s3.example.com", Bucket: "b", Path: "p"}
	place, digest := store.Configured(storetest.Configure(t, config, nil))
	if place != "https://s3.example.com/b/p" || digest == "" {
		t.Errorf("it is %s (%s)", place, digest)
	}
	if again, same := store.Configured(storetest.Configure(t, config, nil)); again != place || same != digest {
		t.Errorf("the same is %s (%s)", again, same)
	}
	config.ServerSideEncryption = "AES256"
	if where, other := store.Configured(storetest.Configure(t, config, nil)); where != place || other == digest {
		t.Errorf("encrypted, it is %s (%s)", where, other)
	}
	config.Bucket = ""
	if where, none := store.Configured(storetest.Configure(t, config, nil)); where != "" || none != "" {
		t.Errorf("without a bucket it is %s (%s)", where, none)
	}
}
