package client

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"cnmsql.co/internal/layout"
)

// DumpFlags have mysqldump write what another cluster can take. Without --set-gtid-purged=OFF the
// dump would keep its statements out of the binary log of whoever loads it, and so off its
// replicas, and would claim GTIDs there. Without --skip-add-drop-table it would drop a table that
// was made again meanwhile.
func DumpFlags() []string {
	return []string{"--set-gtid-purged=OFF", "--skip-add-drop-table", "--single-transaction", "--quick",
		"--no-tablespaces"}
}

// Exec becomes a program of the image, mysql or mysqldump, with args. account is "root" or "app".
// It returns only when it fails.
func Exec(program, account string, args []string) error {
	binary, argv, err := commandLine(program, account, args)
	if err != nil {
		return err
	}
	if err := unix.Exec(binary, argv, environment(os.Environ())); err != nil {
		return fmt.Errorf("executing %s: %w", binary, err)
	}
	return nil
}

// commandLine is that of a program, logged in as account.
func commandLine(program, account string, args []string) (binary string, argv []string, err error) {
	if binary, err = find(program, os.Getenv("PATH")); err != nil {
		return "", nil, err
	}
	dirs := map[string]string{"root": layout.RootDir, "app": layout.AppDir}
	dir, known := dirs[account]
	if !known {
		return "", nil, fmt.Errorf("--user %s is not known; use root or app", account)
	}
	user, secret, err := login(dir)
	if err != nil {
		return "", nil, err
	}
	file, err := optionFile(options(user, secret, os.Getenv(layout.EnvInstance)))
	if err != nil {
		return "", nil, err
	}
	return binary, append([]string{binary, "--defaults-file=" + file}, args...), nil
}

// find looks where images put a program: beside mysqld, mostly.
func find(program, path string) (string, error) {
	dirs := filepath.SplitList(path)
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/usr/local/mysql/bin", "/opt/mysql/bin", "/usr/sbin"} {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if p, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(p) {
			return p, nil
		}
	}
	cluster, namespace := os.Getenv(layout.EnvCluster), os.Getenv(layout.EnvNamespace)
	return "", fmt.Errorf("this image has no %s (looked in %s); use one of your own: "+
		"kubectl port-forward -n %s service/%s-rw 3306, and then: %s -h 127.0.0.1 -u USER -p, "+
		"with username and password of the Secret %s-app",
		program, strings.Join(dirs, ", "), namespace, cluster, program, cluster)
}

// login reads an account from the files of its Secret.
func login(dir string) (user, secret string, err error) {
	name, err := os.ReadFile(filepath.Join(dir, "username"))
	if err != nil {
		return "", "", fmt.Errorf("reading the account: %w", err)
	}
	word, err := os.ReadFile(filepath.Join(dir, "password"))
	if err != nil {
		return "", "", fmt.Errorf("reading the account: %w", err)
	}
	return layout.SecretValue(name), layout.SecretValue(word), nil
}

// options is the client's whole configuration. The image's own files are not
// read: their socket is another one. The prompt names the instance, so that
// nobody mistakes a replica for the primary.
func options(user, secret, instance string) string {
	return fmt.Sprintf("[client]\nuser=%s\npassword=%s\nsocket=%s\n[mysql]\nprompt=%s\n",
		quote(user), quote(secret), quote(layout.Socket), quote(instance+` [\d]> `))
}

// quote keeps every character of a value as it is in an option file.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + `"`
}

// optionFile keeps text in memory that the client inherits and that ends with
// it. The path is good in this process and whatever it becomes.
func optionFile(text string) (string, error) {
	fd, err := unix.MemfdCreate("mysql-options", 0)
	if err != nil {
		return "", fmt.Errorf("making a file in memory for the client's options: %w", err)
	}
	// mysql ignores option files that everybody may write, as these are at first.
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return "", fmt.Errorf("making the client's options private: %w", err)
	}
	for rest := []byte(text); len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return "", fmt.Errorf("writing the client's options: %w", err)
		}
		rest = rest[max(n, 0):]
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), nil
}

// environment has no history file: the root file system is read-only, and
// statements may hold passwords.
func environment(env []string) []string {
	env = slices.DeleteFunc(env, func(e string) bool {
		return strings.HasPrefix(e, "MYSQL_PWD=") || strings.HasPrefix(e, "MYSQL_HISTFILE=")
	})
	return append(env, "MYSQL_HISTFILE=/dev/null")
}
