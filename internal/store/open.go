package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Open reads FileConfig of a directory and gives the store that it tells of. It does not
// speak with the store: what is wrong there, the first use tells. The credentials and the
// authorities are read again whenever they are needed, so that a Secret that is rotated
// needs no restart; FileConfig is not, see Configured. Errors are Misconfigured or CredentialsWrong.
func Open(dir string) (Store, error) {
	config, endpoint, err := located(dir)
	if err != nil {
		return nil, err
	}
	return openWithin(defaults, config, endpoint, dir)
}

// located reads FileConfig of a directory, and gives the URL of the service.
func located(dir string) (Config, *url.URL, error) {
	config, err := readConfig(dir)
	if err != nil {
		return config, nil, fmt.Errorf("reading the store's configuration in %s: %w", dir, err)
	}
	endpoint, err := config.check()
	if err != nil {
		return config, nil, fmt.Errorf("the store's configuration %s: %w", filepath.Join(dir, FileConfig), err)
	}
	if config.Protocol == Azure {
		_, endpoint, err = azureAccount(config, dir)
	}
	return config, endpoint, err
}

// Configured tells which store FileConfig of a directory tells of now: place is for people,
// and digest changes with anything that Open would heed and that is not read again. Both are
// "" when it cannot be used: Open says why.
func Configured(dir string) (place, digest string) {
	config, endpoint, err := located(dir)
	if err != nil {
		return "", ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v %s", config, endpoint))
	return endpoint.JoinPath(config.Bucket, config.Path).String(), hex.EncodeToString(sum[:])
}

// openWithin is Open with a patience for tests.
func openWithin(l limits, config Config, endpoint *url.URL, dir string) (Store, error) {
	switch {
	case config.Protocol == GCS:
		return opened(newGoogle(l, config, endpoint, dir))
	case config.Protocol == Azure:
		return opened(newAzure(l, config, endpoint, dir))
	case endpoint.Scheme == "file":
		return newDirectory(config, endpoint.Path), nil
	}
	return opened(newS3(l, config, endpoint, dir))
}

// opened has no Store beside an error.
func opened[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func readConfig(dir string) (Config, error) {
	var config Config
	text, err := os.ReadFile(filepath.Join(dir, FileConfig))
	if err != nil {
		return config, because(Misconfigured, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return config, because(Misconfigured, fmt.Errorf("%s: %w", FileConfig, err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return config, refuse(Misconfigured, "%s: there is something after the object", FileConfig)
	}
	return config, nil
}

// check gives the endpoint as a URL, Amazon's if none is given.
func (c Config) check() (*url.URL, error) {
	if c.Bucket == "" || wrongKey(c.Bucket) != "" || strings.Contains(c.Bucket, "/") {
		return nil, refuse(Misconfigured, "bucket %q is not the name of a bucket", c.Bucket)
	}
	if c.Path != "" && (wrongKey(c.Path) != "" || len(c.Path) > maxPath) {
		return nil, refuse(Misconfigured, "path %q is not one of at most %d bytes, without a slash at its ends", c.Path,
			maxPath)
	}
	if _, err := encryption(c.ServerSideEncryption); err != nil {
		return nil, err
	}
	u, err := c.endpoint()
	if err == nil && c.Protocol != "" {
		err = c.checkProtocol(u)
	}
	return u, err
}

// checkProtocol refuses what is S3's with another protocol.
func (c Config) checkProtocol(endpoint *url.URL) error {
	switch {
	case c.Protocol != GCS && c.Protocol != Azure:
		return refuse(Misconfigured,
			"protocol %q is none that this version speaks: leave it out for S3, or write %s or %s",
			c.Protocol, GCS, Azure)
	case endpoint.Scheme == "file":
		return refuse(Misconfigured, "a directory has no protocol")
	case c.Region != "" || c.VirtualHost || c.ServerSideEncryption != "":
		return refuse(Misconfigured, "region, virtualHost and serverSideEncryption go with S3, not with %s", c.Protocol)
	case c.Protocol == Azure:
		return c.checkAzure()
	}
	return nil
}

func (c Config) endpoint() (*url.URL, error) {
	switch {
	case c.Endpoint != "":
	case c.Protocol == GCS:
		return url.Parse(googleEndpoint)
	case c.Protocol == Azure:
		return &url.URL{}, nil // the files of the credentials tell
	default:
		return &url.URL{Scheme: "https", Host: amazon(c.Region)}, nil
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil:
		return nil, refuse(Misconfigured, "the endpoint is not a URL") // which may hold a password, as err does
	case u.User != nil:
		return nil, refuse(Misconfigured, "the endpoint holds a name or a password: put them into files")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, refuse(Misconfigured, "endpoint %s has more than a host", c.Endpoint)
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		return u, nil
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, refuse(Misconfigured, "endpoint %s is not https://HOST, http://HOST or file:///DIR", c.Endpoint)
	case u.Path != "" && u.Path != "/" && c.Protocol != Azure:
		return nil, refuse(Misconfigured, "endpoint %s has a path: put it into path", c.Endpoint)
	}
	return u, nil
}

func amazon(region string) string {
	switch {
	case region == "":
		return "s3.amazonaws.com"
	case strings.HasPrefix(region, "cn-"):
		return "s3." + region + ".amazonaws.com.cn"
	}
	return "s3." + region + ".amazonaws.com"
}

// readSecret reads a file of dir without the white space at its ends, which editors leave;
// "" when there is none.
func readSecret(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}
