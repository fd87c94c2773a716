package instance

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
)

// withFakeServer is a manager whose mysqld does nothing until it is killed.
func withFakeServer(t *testing.T) *manager {
	dir := t.TempDir()
	server := filepath.Join(dir, "mysqld")
	must(t, os.WriteFile(server, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755))
	m := newManager(Options{Log: io.Discard, Dirs: Dirs{Run: dir, Data: filepath.Join(dir, "data")}})
	m.launcher.setServer(binary{command: []string{server}})
	m.lease, m.record = &lease{}, &recordFile{dir: dir}
	t.Cleanup(m.endActivity)
	return m
}

func TestNoMysqldIsStartedWhileAnotherRunsOrOnceTheManagerEnds(t *testing.T) {
	m := withFakeServer(t)
	must(t, m.launch())
	first := m.launcher.child
	if err := m.launch(); err == nil {
		t.Error("a second mysqld was started beside the first")
	}
	if err := m.maker.makeDataDir(t.Context(), nil); err == nil {
		t.Error("the data of a running mysqld was recreated")
	}
	m.endActivity()
	if first.running() {
		t.Error("mysqld runs on")
	}
	if err := m.launch(); err == nil {
		t.Error("a mysqld was started by a manager that is ending")
	}
}

func TestWhatAnEarlierMysqldLeftOfItsSocketIsRemoved(t *testing.T) {
	m := withFakeServer(t)
	socket := m.opt.Dirs.socket()
	stray, err := net.Listen("unix", socket)
	must(t, err)
	defer func() { _ = stray.Close() }()
	must(t, os.WriteFile(socket+".lock", []byte("1\n"), 0o600))
	must(t, m.launch())
	for _, file := range []string{socket, socket + ".lock"} {
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", filepath.Base(file), err)
		}
	}
}

// An order interrupts what the worker waits for. An instance that took that for a
// refusal of its configuration stayed down for a minute.
func TestAnInterruptedCheckOfTheConfigurationIsNoRefusal(t *testing.T) {
	m := withFakeServer(t)
	m.configurer.opt.Peer = func(name string) string { return name }
	m.st.cluster.object = &v1alpha1.Cluster{}
	must(t, os.MkdirAll(m.opt.Dirs.Data, 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := m.startServer(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if p := m.st.mysqld.problem; p != nil {
		t.Errorf("it reports a problem: %+v", p)
	}
	if m.launcher.child != nil {
		t.Error("mysqld was started all the same")
	}
}

func TestACheckOfTheConfigurationThatWasKilledIsNoRefusal(t *testing.T) {
	m := withFakeServer(t)
	must(t, os.WriteFile(m.opt.Dirs.config(), []byte("[mysqld]\n"), 0o600))
	must(t, os.WriteFile(m.launcher.server().command[0], []byte("#!/bin/sh\nkill -9 $$\n"), 0o755))
	var refused *namedError
	if err := m.configurer.validate(t.Context()); err == nil || errors.As(err, &refused) {
		t.Errorf("it says %v", err)
	}
	must(t, os.WriteFile(m.launcher.server().command[0], []byte("#!/bin/sh\nexit 1\n"), 0o755))
	if err := m.configurer.validate(t.Context()); !errors.As(err, &refused) || refused.Reason != "ConfigRefused" {
		t.Errorf("it says %v", err)
	}
}

func TestAMysqldThatWasTooSlowToTellItsVersionIsAskedAgain(t *testing.T) {
	m := withFakeServer(t)
	hang := filepath.Join(m.opt.Dirs.Run, "hang")
	must(t, os.WriteFile(hang, nil, 0o600))
	m.launcher.command = m.launcher.server().command
	must(t, os.WriteFile(m.launcher.command[0], []byte("#!/bin/sh\n[ -e "+hang+" ] && exec sleep 60\n"+
		"echo 'mysqld  Ver 9.7.4 for Linux'\n"), 0o755))
	m.configurer.opt.Peer = func(string) string { return "db-1" }
	slow, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := m.launcher.lookForServer(slow)
	if h := new(namedError); !errors.As(err, &h) || h.Reason != "MysqldSilent" || h.again > 10*time.Second {
		t.Fatalf("%v", err)
	}
	must(t, os.Remove(hang))
	must(t, os.MkdirAll(m.opt.Dirs.Data, 0o700))
	must(t, m.configurer.prepareConfig(t.Context(), &v1alpha1.Cluster{}))
	if m.launcher.version().Text != "9.7.4" {
		t.Errorf("%+v", m.launcher.server())
	}
}
