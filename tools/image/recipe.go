package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"runtime"
)

// recipe is everything that decides what the MySQL image holds, as data, so that its hash can name the cached result.
// What Debian's archive held on the day is not part of it: remove the cache to take newer packages.
type recipe struct {
	Format       int // raise it when the code that reads the recipe changes the result
	Architecture string
	Suite        string
	Packages     []string
	// packages that the suite does not list any more, by their path in the mirror
	Debs         []string `json:",omitempty"`
	Programs     []string
	Globs        []string
	LoadedByName []string
	Without      []string
	Directories  []directory
	Texts        []text
	Links        []link
}

type directory struct {
	Path  string
	Mode  fs.FileMode
	Owner int
}

type text struct{ Path, Content string }

type link struct{ Path, Target string }

// mysqlID is the user and group of the server, the same as in MySQL's own images, so that volumes move between them.
const mysqlID = 999

var mysqlRecipe = recipe{
	Format:       1,
	Architecture: runtime.GOARCH,
	Suite:        "sid",
	Packages:     []string{"mysql-server-core", "mysql-client-core", "ca-certificates"},
	Programs: []string{
		"usr/sbin/mysqld", "usr/bin/mysql", "usr/bin/mysqladmin", "usr/bin/mysqlbinlog", "usr/bin/mysqldump",
		"usr/bin/innochecksum",
	},
	Globs: []string{
		"usr/lib/mysql/plugin/*.so",
		"usr/share/mysql/charsets/*",
		"usr/share/mysql/english/errmsg.sys",
		"etc/ssl/openssl.cnf",
	},
	// The C library opens these by name when a user or a host is looked up, so no ELF header mentions them.
	LoadedByName: []string{"libnss_files.so.2", "libnss_dns.so.2"},
	// Plugins for clients of authentication services that no server here has, and three that
	// would bring curl, LDAP, Kerberos, FIDO and a Japanese dictionary with them: 33 MB of
	// plugins and as much again of libraries.
	Without: []string{
		"*_client.so", "authentication_webauthn.so", "component_telemetry.so", "libpluginmecab.so",
	},
	Directories: []directory{
		{"dev", 0o755, 0}, {"proc", 0o755, 0}, {"sys", 0o755, 0}, // mount points
		{"root", 0o700, 0},
		{"run", 0o755, 0}, {"run/mysqld", 0o755, mysqlID},
		{"tmp", 0o777 | fs.ModeSticky, 0}, {"var", 0o755, 0}, {"var/tmp", 0o777 | fs.ModeSticky, 0},
		{"var/lib", 0o755, 0}, {"var/lib/mysql", 0o750, mysqlID},
		{"var/lib/mysql-files", 0o750, mysqlID}, // the server's default secure_file_priv; it refuses to start without
		{"var/log", 0o755, 0},
	},
	Texts: []text{
		{"etc/passwd",
			"root:x:0:0:root:/root:/usr/sbin/nologin\nmysql:x:999:999:MySQL:/var/lib/mysql:/usr/sbin/nologin\n"},
		{"etc/group", "root:x:0:\nmysql:x:999:\n"},
		{"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
		{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
	},
	Links: []link{
		// the loader's path is /lib64/…
		{"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"},
		{"var/run", "../run"},
		{"usr/lib/ssl/openssl.cnf", "../../../etc/ssl/openssl.cnf"},
		{"usr/lib/ssl/certs", "../../../etc/ssl/certs"},
		{"usr/lib/ssl/cert.pem", "../../../etc/ssl/certs/ca-certificates.crt"},
	},
}

// mysql80Recipe is of the last 8.0 that Debian built, which its mirrors keep while no suite has
// it. Its libraries are those of sid, but for one.
var mysql80Recipe = func() recipe {
	r := mysqlRecipe
	r.Packages = []string{
		"ca-certificates", "libaio1t64", "libedit2", "libevent-core-2.1-7t64", "libevent-pthreads-2.1-7t64",
		"liblz4-1", "libnuma1",
		"libprotobuf-lite32t64", "libssl3t64", "libtirpc3t64", "libzstd1", "zlib1g",
	}
	r.Debs = []string{
		"pool/main/m/mysql-8.0/mysql-server-core-8.0_8.0.45-1_amd64.deb",
		"pool/main/m/mysql-8.0/mysql-server-8.0_8.0.45-1_amd64.deb", // the plugins
		"pool/main/m/mysql-8.0/mysql-client-core-8.0_8.0.45-1_amd64.deb",
		"pool/main/i/icu/libicu76_76.1-4_amd64.deb",
	}
	return r
}()

// recipes are those of the releases that are tried, by MySQL's name for them.
var recipes = map[string]recipe{"9.7": mysqlRecipe, "8.0": mysql80Recipe}

// key names the recipe in the cache.
func (r recipe) key() string {
	content, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers only: cannot fail
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}
