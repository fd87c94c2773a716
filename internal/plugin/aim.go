package plugin

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnmsql.co/internal/printable"
)

// aim is at which Kubernetes, and as whom, the plugin was run: a command that it prints has to act on the
// same. It goes into texts where they are printed, so that whoever writes one need not think of it; those of
// the operator, which cannot know it, get it there as well.
type aim struct {
	// flags that were given, as a shell takes them; "" when there were none.
	flags string
	// where is the context and the address of the API server, for people.
	where string
}

// aimFlags are those of kubectl that say which Kubernetes, and as whom. -n stands in the commands anyway.
var aimFlags = []string{"kubeconfig", "context", "cluster", "server", "tls-server-name", "certificate-authority",
	"insecure-skip-tls-verify", "client-certificate", "client-key", "token", "as", "as-uid", "as-group",
	"as-user-extra"}

// aimOf are the flags that were given.
func aimOf(flags *pflag.FlagSet) aim {
	if flags == nil {
		return aim{}
	}
	var given []string
	for _, name := range aimFlags {
		f := flags.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if many, is := f.Value.(pflag.SliceValue); is {
			values = many.GetSlice()
		}
		for _, value := range values {
			switch {
			case name == "token": // a secret has no place on a screen
				given = append(given, "--token TOKEN")
			case f.NoOptDefVal != "":
				given = append(given, "--"+name+"="+shellWord(value))
			default:
				given = append(given, "--"+name+" "+shellWord(value))
			}
		}
	}
	return aim{flags: strings.Join(given, " ")}
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// shellWord is a value as a shell takes it for one word.
func shellWord(value string) string {
	if plainWord.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// aCommand is one of kubectl or of this plugin, up to its verb. One with flags before its verb is aimed
// already.
var aCommand = regexp.MustCompile(`\bkubectl (?:cnmsql )?[a-z][a-z-]*`)

// in puts the flags into the commands of a text. They stand before the verb, where both kubectl and this
// plugin take them: the end of a command in a sentence cannot be told.
func (a aim) in(text string) string {
	if a.flags == "" {
		return text
	}
	return aCommand.ReplaceAllStringFunc(text, func(command string) string {
		before, verb := command[:strings.LastIndex(command, " ")], command[strings.LastIndex(command, " ")+1:]
		if verb == "cnmsql" { // the plugin itself, flags or no verb after it
			return command
		}
		return before + " " + a.flags + " " + verb
	})
}

// ofNodes are verbs of kubectl that act on what is in no namespace.
var ofNodes = []string{"taint", "drain", "cordon", "uncordon"}

// withSecondVerb is a command up to the last of its verbs.
var withSecondVerb = regexp.MustCompile(`\bkubectl (?:cnmsql (?:group|backup|fence) [a-z]+|(?:cnmsql )?[a-z][a-z-]*)`)

// inNamespace puts the namespace into the commands of a sentence of the operator's, which leaves it out. It stands
// after the verb, for kubectl takes no flag before the name of a plugin. A sentence that has it stays as it is.
func inNamespace(namespace, text string) string {
	if strings.Contains(text, " -n ") {
		return text
	}
	return withSecondVerb.ReplaceAllStringFunc(text, func(command string) string {
		verb := command[strings.LastIndex(command, " ")+1:]
		if verb == "cnmsql" || slices.Contains(ofNodes, verb) {
			return command
		}
		return command + " -n " + namespace
	})
}

func (a aim) inAll(texts []string) []string {
	out := make([]string, len(texts))
	for i := range texts {
		out[i] = a.in(texts[i])
	}
	return out
}

// report puts the flags where programs find commands.
func (a aim) report(r *Report) {
	if a.flags != "" {
		r.ToDo, r.Connect.Commands = a.inAll(r.ToDo), a.inAll(r.Connect.Commands)
	}
}

// printer puts the flags into what is written for people. It is not for data.
func (a aim) printer(out io.Writer) io.Writer { return aimed{a, out} }

type aimed struct {
	aim
	out io.Writer
}

func (w aimed) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.out, w.in(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// aimedError is an error whose text has the flags in its commands, and is one line: much in it was written by
// instances and the operator.
type aimedError struct {
	error
	aim
}

func (e *aimedError) Unwrap() error { return e.error }

func (e *aimedError) Error() string { return printable.Text(e.in(e.error.Error())) }

// aimErrors puts the flags into the errors of a command and of those below it.
func aimErrors(cmd *cobra.Command, k *kube) {
	for _, below := range cmd.Commands() {
		aimErrors(below, k)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err != nil {
			return &aimedError{err, aimOf(k.flags)}
		}
		return err
	}
}
