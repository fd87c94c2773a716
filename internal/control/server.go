package control

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// NewHandler serves an Instance. The operator may command; a peer may only read
// the status and ask for a vouch; everybody else is refused.
func NewHandler(in Instance) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+PathStatus, allow(status(in), pki.OrgOperator, pki.OrgInstance))
	mux.Handle("GET "+PathVouch, allow(vouch(in), pki.OrgInstance))
	mux.Handle("POST "+PathManager, allow(replaceManager(in), pki.OrgOperator))
	mux.Handle("POST "+PathOrder+"{verb}", allow(order(in), pki.OrgOperator))
	mux.Handle("POST "+PathCheck, allow(startCheck(in), pki.OrgOperator))
	mux.Handle("GET "+PathCheck, allow(checkReport(in), pki.OrgOperator))
	return mux
}

// ServerTLS is the TLS configuration of the control server; leaf and pool are
// asked at each handshake, so that rotated files are used at once.
func ServerTLS(leaf func() (*tls.Certificate, error), pool func() (*x509.CertPool, error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			cas, err := pool()
			if err != nil {
				return nil, err
			}
			cert, err := leaf()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				NextProtos:   []string{"h2", "http/1.1"},
				Certificates: []tls.Certificate{*cert},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    cas,
			}, nil
		},
	}
}

func allow(next http.Handler, orgs ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !callerIs(r, orgs) {
			refuse(w, http.StatusForbidden, &Refusal{Reason: core.ControlForbidden, Message: "this route is for " +
				strings.Join(orgs, ", ")})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func callerIs(r *http.Request, orgs []string) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	for _, have := range r.TLS.PeerCertificates[0].Subject.Organization {
		for _, want := range orgs {
			if have == want {
				return true
			}
		}
	}
	return false
}

func status(in Instance) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		q := r.URL.Query()
		if q.Get("watch") != "true" {
			_ = json.NewEncoder(w).Encode(in.Snapshot(r.Context()))
			return
		}
		rc, tell := http.NewResponseController(w), teller{to: w, brief: q.Get("brief") == "true"}
		_ = in.Watch(r.Context(), func(s Snapshot) error {
			if err := tell.snapshot(s); err != nil {
				return err
			}
			return rc.Flush()
		})
	})
}

func vouch(in Instance) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		epoch, err := strconv.ParseInt(r.URL.Query().Get("epoch"), 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, &Refusal{Reason: core.ControlBadRequest, Message: "epoch: " + err.Error()})
			return
		}
		answer(w, in.Vouch(r.Context(), r.URL.Query().Get("instance"), epoch), func() any { return struct{}{} })
	})
}

// answer says no, or tells what is asked for.
func answer(w http.ResponseWriter, err error, body func() any) {
	var no *Refusal
	switch {
	case errors.As(err, &no):
		refuse(w, http.StatusConflict, no)
	case err != nil:
		refuse(w, http.StatusInternalServerError, &Refusal{Reason: core.ControlFailed, Message: err.Error()})
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body())
	}
}

func order(in Instance) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		o, err := readOrder(Verb(r.PathValue("verb")), body)
		if err != nil {
			refuse(w, http.StatusBadRequest, &Refusal{Reason: core.ControlBadRequest, Message: err.Error()})
			return
		}
		answer(w, in.Order(r.Context(), o), func() any { return in.Snapshot(r.Context()) })
	})
}

// binaryLimit is more than any build of the manager has.
const binaryLimit = 1 << 30

func replaceManager(in Instance) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := in.ReplaceManager(r.Context(), r.URL.Query().Get("digest"), http.MaxBytesReader(w, r.Body, binaryLimit))
		answer(w, err, func() any { return struct{}{} })
	})
}

func refuse(w http.ResponseWriter, code int, r *Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(r)
}
