package core

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// RestoreStage is what a restore is at.
type RestoreStage string

// Stages of a restore, in this order.
const (
	// RestoreCopy is the stage in which the files of a running server are copied: instead of the two that follow.
	RestoreCopy RestoreStage = "Copy"
	// RestoreFiles is the stage in which the backup's files are written.
	RestoreFiles RestoreStage = "Backup"
	// RestoreReplay is the stage in which the archive is replayed on them.
	RestoreReplay RestoreStage = "Archive"
	// RestoreFinish is the stage in which the data are made the cluster's own.
	RestoreFinish RestoreStage = "Finishing"
	// RestoreDone is the stage in which the data are the cluster's.
	RestoreDone RestoreStage = "Completed"
)

// Restore is how far the restore of a cluster's first data is, or what it was.
type Restore struct {
	// Backup is the name in the store of the one that is restored, and Source that of the running server whose
	// data are copied instead.
	Backup string `json:"backup"`
	Source string `json:"source,omitempty"`
	// PassedOver are the newer ones that could not be used.
	PassedOver []PassedOver `json:"passedOver,omitempty"`
	Stage      RestoreStage `json:"stage"`
	// Lacking are tables of which the backup has no rows, because they were not InnoDB; the last
	// may be a number of more.
	Lacking []string `json:"lacking,omitempty"`
	// Files is how far the backup is, in bytes.
	Files Amount `json:"files,omitzero"`
	// Replay is how far the archive is, in transactions; Bytes and TotalBytes of its parts.
	Replay     Amount `json:"replay,omitzero"`
	Bytes      int64  `json:"bytes,omitempty"`
	TotalBytes int64  `json:"totalBytes,omitempty"`
	// Part is the last one of the archive that was replayed, as epoch/number.
	Part string `json:"part,omitempty"`
	// Reached is the latest commit that the data hold, and Until that which they will.
	Reached time.Time `json:"reached,omitzero"`
	Until   time.Time `json:"until,omitzero"`
}

// PassedOver is a backup that could not be used, and the name of why.
type PassedOver struct {
	Backup string `json:"backup"`
	Reason Reason `json:"reason"`
}

// Amount is how much of something is done.
type Amount struct {
	Done      int64 `json:"done"`
	Of        int64 `json:"of"`
	PerSecond int64 `json:"perSecond,omitempty"`
	// Ends is when it will have been, at that rate; zero while that is not known.
	Ends time.Time `json:"ends,omitzero"`
}

// AmountAt counts what is done since a moment.
func AmountAt(done, of int64, began, now time.Time) Amount {
	a := Amount{Done: done, Of: of}
	took := now.Sub(began)
	if took < time.Second || done <= 0 {
		return a
	}
	perSecond := float64(done) / took.Seconds()
	a.PerSecond = int64(perSecond)
	a.Ends = now.Add(time.Duration(float64(max(of-done, 0)) / perSecond * float64(time.Second)))
	return a
}

// Percent of it that is done.
func (a Amount) Percent() int {
	if a.Of <= 0 {
		return 0
	}
	return int(min(max(100*float64(a.Done)/float64(a.Of), 0), 100))
}

// lasting is what of a restore is worth a word at once: another stage, and each percent.
func (r *Restore) lasting() *Restore {
	if r == nil {
		return nil
	}
	out := &Restore{Backup: r.Backup, Source: r.Source, PassedOver: slices.Clone(r.PassedOver), Stage: r.Stage,
		Lacking: slices.Clone(r.Lacking)}
	out.Files.Done, out.Replay.Done = int64(r.Files.Percent()), int64(r.Replay.Percent())
	return out
}

// Same reports whether two say the same but for positions.
func (r *Restore) Same(other *Restore) bool {
	if r == nil || other == nil {
		return r == other
	}
	a, b := r.lasting(), other.lasting()
	return a.Backup == b.Backup && a.Source == b.Source && a.Stage == b.Stage &&
		slices.Equal(a.PassedOver, b.PassedOver) && slices.Equal(a.Lacking, b.Lacking) &&
		a.Files.Done == b.Files.Done && a.Replay.Done == b.Replay.Done
}

// PassedText tells which newer backups could not be used, and why; "" if there is none.
func (r *Restore) PassedText() string {
	all := make([]string, len(r.PassedOver))
	for i, p := range r.PassedOver {
		all[i] = fmt.Sprintf("%s: %s", p.Backup, p.Reason)
	}
	return strings.Join(all, ", ")
}
