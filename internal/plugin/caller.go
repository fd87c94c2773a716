package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/printable"
)

// caller asks the operator for something about one Cluster, and follows what it
// makes of it.
type caller struct {
	client client.WithWatch
	in     io.Reader
	out    io.Writer
	now    func() time.Time
	key    types.NamespacedName
	// yes: nothing is asked back.
	yes bool
	ask asking
	// aim of the commands that are printed.
	aim aim
	// silent tells of the last observation why who did not answer.
	silent map[string]string
}

func newCaller(cmd *cobra.Command, s *session, cluster string, yes bool) caller {
	return caller{client: s.client, in: cmd.InOrStdin(), out: cmd.OutOrStdout(), now: time.Now, yes: yes,
		key: types.NamespacedName{Namespace: s.namespace, Name: cluster}, ask: s.askManager, aim: s.aim}
}

func (p *caller) say(format string, args ...any) {
	sentence(p.out, "%s", p.aim.in(fmt.Sprintf(format, args...)))
}

// confirm says of which Kubernetes it is, and goes on only if the answer is what is wanted; nothing is done
// otherwise, nor when ctx ends before there is one.
func (p *caller) confirm(ctx context.Context, wanted, question string) error {
	if p.yes {
		return nil
	}
	if p.aim.where != "" {
		p.say("This is %s.", p.aim.where)
	}
	_, _ = fmt.Fprint(p.out, printable.Text(question)+" ")
	answer, err := p.answer(ctx)
	switch {
	case ctx.Err() != nil:
		p.say("")
		return errors.New("interrupted before there was an answer: nothing was done")
	case strings.EqualFold(answer, wanted):
		return nil
	case errors.Is(err, io.EOF) && answer == "":
		p.say("")
		return errors.New("nobody answered, and nothing was done; --yes goes on without asking")
	default:
		return fmt.Errorf("the answer was %q and not %q: nothing was done", answer, wanted)
	}
}

// answer is a line of input. Whoever reads one waits on when ctx ends; the process ends then.
func (p *caller) answer(ctx context.Context) (string, error) {
	type read struct {
		line string
		err  error
	}
	typed := make(chan read, 1)
	go func() {
		line, err := bufio.NewReader(p.in).ReadString('\n')
		typed <- read{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-typed:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// annotate sets annotations of an object, or removes those that are nil. With a
// version it does so only if the object is still that one.
func (p *caller) annotate(ctx context.Context, obj client.Object, version string, values map[string]any) error {
	meta := map[string]any{"annotations": values}
	if version != "" {
		meta["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return err
	}
	return p.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch))
}

// holderOf is the instance that may take writes; "" when there is none yet.
func holderOf(s *v1alpha1.ClusterStatus) string {
	if s.Promotion != nil {
		return s.Promotion.Instance
	}
	return s.CurrentPrimary
}
