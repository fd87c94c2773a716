package control

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// onTheWire are orders as operators send them. Managers of other versions read them: what stands
// here never changes.
var onTheWire = []struct {
	effect     core.Effect
	verb, body string
}{
	{core.Demote{Instance: "c-1", Epoch: 7}, "demote", `{"epoch":7}`},
	{core.ReceivePromise{Instance: "c-1", Epoch: 7}, "freeze-io", `{"epoch":7}`},
	{core.CloneFrom{Instance: "c-1", Donor: "c-2", Epoch: 7}, "clone-from", `{"epoch":7,"donor":"c-2.ns"}`},
	{core.RestartInPlace{Instance: "c-1", Epoch: 7}, "restart-in-place", `{"epoch":7}`},
	{core.SetAcks{Instance: "c-1", Epoch: 7, Acks: 2, Order: 5}, "set-acks", `{"epoch":7,"acks":2,"number":5}`},
	{core.SetAcks{Instance: "c-1", Epoch: 7, Acks: 0, Order: 5}, "set-acks", `{"epoch":7,"number":5}`},
	{core.SetAcks{Instance: "c-1", Epoch: 7, Acks: 1}, "set-acks", `{"epoch":7,"acks":1}`},
	{core.AdoptTransactions{Instance: "c-1", Epoch: 7, Set: "u:1-3"}, "adopt-transactions",
		`{"epoch":7,"transactions":"u:1-3"}`},
	{core.SetGroupPrimary{Instance: "c-1", Primary: "c-2", UUID: "u", Within: 90 * time.Second, Epoch: 7},
		"set-group-primary", `{"epoch":7,"member":"u","within":90}`},
	{core.SetGroupPrimary{Instance: "c-1", Primary: "c-2", UUID: "u", Epoch: 7}, "set-group-primary",
		`{"epoch":7,"member":"u"}`},
	{core.ForceMembers{Instance: "c-1", Members: "c-1,c-3", View: "v:9", Epoch: 7}, "force-members",
		`{"epoch":7,"members":["c-1","c-3"],"view":"v:9"}`},
	{core.ForceMembers{Instance: "c-1", Members: "c-1", Epoch: 7}, "force-members", `{"epoch":7,"members":["c-1"]}`},
	{core.RebootGroup{Instance: "c-1", Epoch: 7}, "reboot-group", `{"epoch":7}`},
}

// sent is what a client sends to have an effect carried out.
func sent(t *testing.T, e core.Effect) (request, body string) {
	t.Helper()
	c, _ := stream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		request, body = r.Method+" "+r.URL.String(), string(text)
		_ = json.NewEncoder(w).Encode(Snapshot{})
	}))
	instance, o := OrderOf(e, func(instance string) string { return instance + ".ns" })
	if instance != "c-1" || o == nil {
		t.Fatalf("%s orders %q %v", e, instance, o)
	}
	if _, err := c.Order(t.Context(), o); err != nil {
		t.Error(err)
	}
	return request, body
}

func TestAnOrderIsTheSameToEveryVersion(t *testing.T) {
	for _, c := range onTheWire {
		request, body := sent(t, c.effect)
		if want := "POST /v1/order/" + c.verb; request != want || body != c.body {
			t.Errorf("%s:\nis sent as %s %s\nand was    %s %s", c.effect, request, body, want, c.body)
		}
	}
}

// obedient is an instance that obeys, and what it was ordered last.
type obedient struct {
	Instance
	verb, body string
	epoch      int64
}

func (in *obedient) Snapshot(context.Context) Snapshot { return Snapshot{} }

func (in *obedient) Order(_ context.Context, o Order) error {
	text, err := json.Marshal(o)
	in.verb, in.epoch, in.body = string(o.Verb()), o.OfEpoch(), string(text)
	return err
}

// posted is what a manager answers to an order, and what its instance was told.
func posted(verb, body string) (code int, answer string, in *obedient) {
	in = &obedient{}
	mux, w := http.NewServeMux(), httptest.NewRecorder()
	mux.Handle("POST "+PathOrder+"{verb}", order(in))
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PathOrder+verb, strings.NewReader(body)))
	return w.Code, w.Body.String(), in
}

func TestAnOrderOfEveryVersionIsRead(t *testing.T) {
	const foreign = `,"donor":"d","acks":2,"number":1,"transactions":"u:1","member":"m","within":3,` +
		`"members":["c-9"],"view":"v"}`
	for _, c := range onTheWire {
		code, answer, in := posted(c.verb, c.body)
		if code != http.StatusOK || in.verb != c.verb || in.epoch != 7 || in.body != c.body {
			t.Errorf("%s %s: %d %s, read as %+v", c.verb, c.body, code, answer, in)
		}
		later := strings.TrimSuffix(c.body, "}") + `,"later":{"a":[1]}}`
		if code, answer, in = posted(c.verb, later); code != http.StatusOK || in.verb != c.verb || in.body != c.body {
			t.Errorf("%s with a field of a later operator: %d %s, read as %+v", c.verb, code, answer, in)
		}
		code, answer, in = posted(c.verb, `{"epoch":7`+foreign)
		if code != http.StatusOK || in.verb != c.verb || in.epoch != 7 {
			t.Errorf("%s with fields of other orders: %d %s, read as %+v", c.verb, code, answer, in)
		}
	}
}

// A manager says itself what it does about an order that it does not know: its epoch counts.
func TestAnOrderOfALaterOperatorComesToTheInstance(t *testing.T) {
	code, answer, in := posted("apply-accounts", `{"epoch":7,"accounts":["a"]}`)
	if code != http.StatusOK || in.verb != "apply-accounts" || in.epoch != 7 {
		t.Errorf("%d %s, read as %+v", code, answer, in)
	}
}

func TestAnOrderThatCannotBeReadIsRefused(t *testing.T) {
	for _, verb := range []string{"demote", "set-acks", "apply-accounts"} {
		for _, body := range []string{"", "{", `{"epoch":"7"}`, "[7]"} {
			code, answer, in := posted(verb, body)
			refused := code == http.StatusBadRequest && strings.Contains(answer, string(core.ControlBadRequest))
			if !refused || in.verb != "" {
				t.Errorf("%s %q: %d %s, read as %+v", verb, body, code, answer, in)
			}
		}
	}
}
