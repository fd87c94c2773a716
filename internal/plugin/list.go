package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"cnmsql.co/internal/printable"
)

// WriteList prints one line a cluster. What is happening comes last, for it is
// long. unread is why it is not known which Pods there are.
func WriteList(out io.Writer, all []Report, unread error) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAMESPACE\tNAME\tPHASE\tWRITABLE\tPRIMARY\tREADY\tAGE\tHAPPENING")
	for _, r := range all {
		happening := inNamespace(r.Namespace, r.Happening)
		if r.Doubt != "" {
			happening = "CONTRADICTS what is seen: " + r.Doubt + "; " + happening
		}
		cells(w, r.Namespace, r.Name, r.Phase, string(r.Writable), cmp.Or(r.Primary, "-"),
			fmt.Sprintf("%d/%d", r.Ready, r.Wanted), duration.HumanDuration(r.Taken.Sub(r.Created)), happening)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	compared := "It was compared only with which Pods there are and which are ready"
	if unread != nil {
		compared = fmt.Sprintf("It is compared with nothing, because Pods could not be read (%v)", unread)
	}
	_, err := fmt.Fprintf(out, "\nThis is what the operator wrote last. %s. What the instances say now: kubectl "+
		"cnmsql status NAME -n NAMESPACE\n", printable.Text(compared))
	return err
}

// checkFormat refuses a value of -o that is not known. Without one, plain is printed.
func checkFormat(output, plain string) error {
	if slices.Contains([]string{"", "json", "yaml"}, output) {
		return nil
	}
	return unknownFormat(output, plain)
}

func unknownFormat(output, plain string) error {
	return fmt.Errorf("-o %s is not known; use json or yaml, or none for a %s", output, plain)
}

// encode prints for programs. v is a Report or a list of them.
func encode(out io.Writer, format string, v any) error {
	var text []byte
	var err error
	switch format {
	case "json":
		text, err = json.MarshalIndent(v, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(v)
	default:
		return unknownFormat(format, "table")
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
