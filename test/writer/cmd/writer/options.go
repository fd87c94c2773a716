package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"cnmsql.co/test/writer"
)

// passwordVariable is read when no file is named. There is no flag for the password itself:
// everybody on the machine can read another process's arguments.
const passwordVariable = "CNMSQL_WRITER_PASSWORD"

type options struct {
	config        writer.Config
	duration      time.Duration
	json          bool
	stop          bool
	verifyAddr    string
	verifyTimeout time.Duration

	passwordFile, tlsCA, tlsServerName string
	tlsSkipVerify                      bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := o.flags(stderr)
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("writer takes no arguments, but got %q; did a flag lose its dashes?", flags.Args())
	}
	if o.config.Interval == 0 {
		o.config.Interval = -1 // in the package, zero means the default
	}
	var err error
	if o.config.Password, err = o.password(); err != nil {
		return options{}, err
	}
	o.config.TLS, err = o.tls()
	return o, err
}

func (o *options) flags(stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("writer", flag.ContinueOnError)
	f.SetOutput(stderr)
	c := &o.config
	f.StringVar(&c.Addr, "addr", "", "host:port, or the path of a socket (required)")
	f.StringVar(&c.User, "user", "root", "the MySQL user")
	f.StringVar(&o.passwordFile, "password-file", "", "file with the password (default: the variable "+
		passwordVariable+")")
	f.StringVar(&o.tlsCA, "tls-ca", "", "file with the certificates to trust; turns TLS on")
	f.StringVar(&o.tlsServerName, "tls-server-name", "",
		"name to expect in the server's certificate (default: the host)")
	f.BoolVar(&o.tlsSkipVerify, "tls-skip-verify", false, "turn TLS on and trust any certificate")
	f.IntVar(&c.Connections, "connections", 4, "how many connections write")
	f.DurationVar(&c.Interval, "interval", 5*time.Millisecond,
		"from one insert of a connection to its next; 0: no pause")
	f.StringVar(&c.Table, "table", "cnmsql_writer.rows", "database.table, created when it is not there")
	f.StringVar(&c.Run, "run", "", "tells this run's rows from others' (default: random)")
	f.DurationVar(&o.duration, "duration", 0, "how long to write; 0: until a signal")
	f.DurationVar(&c.StartTimeout, "start-timeout", 30*time.Second, "how long to wait for a writable endpoint")
	f.StringVar(&o.verifyAddr, "verify-addr", "", "check the rows there rather than at --addr")
	f.DurationVar(&o.verifyTimeout, "verify-timeout", 30*time.Second, "how long to try to check")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	f.BoolVar(&o.stop, "stop", false, "write nothing, but tell process 1 to stop: for a container of a writer, "+
		"without a shell")
	return f
}

func (o *options) password() (string, error) {
	if o.passwordFile == "" {
		return os.Getenv(passwordVariable), nil
	}
	content, err := os.ReadFile(o.passwordFile)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

func (o *options) tls() (*tls.Config, error) {
	if o.tlsCA == "" && !o.tlsSkipVerify && o.tlsServerName == "" {
		return nil, nil
	}
	c := &tls.Config{ServerName: o.tlsServerName, InsecureSkipVerify: o.tlsSkipVerify}
	if o.tlsCA == "" {
		return c, nil
	}
	content, err := os.ReadFile(o.tlsCA)
	if err != nil {
		return nil, fmt.Errorf("read the certificates to trust: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", o.tlsCA)
	}
	return c, nil
}
