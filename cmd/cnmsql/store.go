package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnmsql.co/internal/byhand"
	"cnmsql.co/internal/moment"
	"cnmsql.co/internal/recovery"
)

// storeCommand is for a person who has an object store and nothing else.
func storeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "List and restore what lies in an object store, without Kubernetes"}
	cmd.AddCommand(storeListCommand(), storeRestoreCommand(), storeReplayCommand(), storeStatementsCommand())
	return cmd
}

func storeListCommand() *cobra.Command {
	var w byhand.Where
	cmd := &cobra.Command{Use: "list", Short: "Tell of the backups and the archive of a cluster", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return byhand.List(cmd.Context(), w, cmd.OutOrStdout()) }}
	whereFlags(cmd, &w)
	return cmd
}

func storeRestoreCommand() *cobra.Command {
	var f byhand.Files
	var t target
	cmd := &cobra.Command{Use: "restore", Args: cobra.NoArgs,
		Short: "Write a backup into an empty data directory, and say what to do next",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			f.Out = cmd.OutOrStdout()
			if f.Target, err = t.parse(); err != nil {
				return err
			}
			return byhand.Restore(cmd.Context(), f)
		}}
	whereFlags(cmd, &f.Where)
	t.flags(cmd)
	cmd.Flags().StringVar(&f.BackupID, "backup", "", "ID of the backup; absent: the newest that leads to the target")
	cmd.Flags().StringVar(&f.Into, "into", "", "the data directory, which is empty or made")
	cmd.Flags().StringVar(&f.Mysqld, "mysqld", "mysqld", "the mysqld that is to run on the data")
	_ = cmd.MarkFlagRequired("into")
	return cmd
}

func storeReplayCommand() *cobra.Command {
	var a byhand.Archive
	var t target
	var passwordFile string
	cmd := &cobra.Command{Use: "replay", Args: cobra.NoArgs,
		Short: "Replay the archive on a mysqld that runs on a backup that was restored",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			a.Out = cmd.OutOrStdout()
			if a.Target, err = t.parse(); err != nil {
				return err
			}
			if passwordFile != "" {
				text, err := os.ReadFile(passwordFile)
				if err != nil {
					return err
				}
				a.Password = strings.TrimRight(string(text), "\r\n")
			}
			return byhand.Replay(cmd.Context(), a)
		}}
	whereFlags(cmd, &a.Where)
	t.flags(cmd)
	cmd.Flags().StringVar(&a.BackupID, "backup", "", "ID of the backup on whose files mysqld runs")
	cmd.Flags().StringVar(&a.Socket, "socket", "", "the socket of mysqld")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "a file with the password of root; none when absent")
	_ = cmd.MarkFlagRequired("backup")
	_ = cmd.MarkFlagRequired("socket")
	return cmd
}

func storeStatementsCommand() *cobra.Command {
	var w byhand.Where
	var f search
	cmd := &cobra.Command{Use: "statements", Args: cobra.NoArgs,
		Short: "List statements of the archive of a cluster, with times and GTIDs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.parse(time.Now(), cmd.OutOrStdout())
			if err != nil {
				return err
			}
			return s.Archive(cmd.Context(), w)
		}}
	whereFlags(cmd, &w)
	f.flags(cmd)
	return cmd
}

// search is which statements are looked for, in words.
type search struct{ matching, since, until string }

func (f *search) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.matching, "matching", "(?i)\\b(drop|truncate|alter|rename)\\b",
		"a regular expression of Go; an empty one matches all statements")
	cmd.Flags().StringVar(&f.since, "since", "", "committed then or later: 2026-11-23T21:04:05Z, or 2h: so long ago")
	cmd.Flags().StringVar(&f.until, "until", "", "committed then or before")
}

func (f *search) parse(now time.Time, out io.Writer) (s byhand.Search, err error) {
	s.Out = out
	if s.Matching, err = regexp.Compile(f.matching); err != nil {
		return s, fmt.Errorf("--matching %s is no regular expression: %w", f.matching, err)
	}
	if s.Since, err = moment.Parse("since", f.since, now); err != nil {
		return s, err
	}
	s.Until, err = moment.Parse("until", f.until, now)
	return s, err
}

func whereFlags(cmd *cobra.Command, w *byhand.Where) {
	f := cmd.Flags()
	f.StringVar(&w.Copy, "copy", "", "a directory that holds that of the cluster, as the store does")
	f.StringVar(&w.Store, "store", "", "a directory with store.json and the files of the credentials")
	f.StringVar(&w.Cluster, "cluster", "", "the name of the cluster in the store")
	f.StringVar(&w.Identity, "identity", "", "a file of age-keygen, if backups or archive are encrypted")
	f.Int64Var(&w.Limit, "max-bytes-per-second", 0, "read at most so many; 0 is any number")
	cmd.MarkFlagsMutuallyExclusive("copy", "store")
	cmd.MarkFlagsOneRequired("copy", "store")
	_ = cmd.MarkFlagRequired("cluster")
}

// target is where a restore stops, in words.
type target struct {
	recovery.Target
	time string
}

func (t *target) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.time, "time", "", "stop at what was committed then, as 2026-11-23T21:04:05.5Z")
	f.StringVar(&t.GTID, "gtid", "", "stop at a transaction, as UUID:NUMBER, with it")
	f.BoolVar(&t.Exclusive, "exclusive", false, "stop before the transaction of --gtid")
	f.BoolVar(&t.Immediate, "immediate", false, "the backup alone")
	cmd.MarkFlagsMutuallyExclusive("time", "gtid", "immediate")
	cmd.MarkFlagsMutuallyExclusive("exclusive", "time")
	cmd.MarkFlagsMutuallyExclusive("exclusive", "immediate")
}

func (t *target) parse() (recovery.Target, error) {
	if t.Exclusive && t.GTID == "" {
		return t.Target, errors.New("--exclusive goes with --gtid: before which transaction?")
	}
	if t.time == "" {
		return t.Target, nil
	}
	var err error
	if t.Time, err = time.Parse(time.RFC3339Nano, t.time); err != nil {
		return t.Target, fmt.Errorf("--time %s is no time: write it as 2026-11-23T21:04:05.5Z", t.time)
	}
	return t.Target, nil
}
