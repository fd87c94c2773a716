package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	readable = `{"metadata":{"name":"a","namespace":"ns","uid":"1"},"spec":{"instances":3},` +
		`"status":{"phase":"Healthy"}}`
	unreadable = `{"metadata":{"name":"b","namespace":"ns","uid":"2"},"spec":{"instances":3,` +
		`"failoverPolicy":{"maxReplicationLag":"1d"}},` +
		`"status":{"phase":"Healthy","currentPrimaryTimestamp":"2026-11-26T14:00:00Z"}}`
)

func TestOneUnreadableObjectEndsNoList(t *testing.T) {
	var all ClusterList
	if err := json.Unmarshal([]byte(`{"items":[`+readable+`,`+unreadable+`]}`), &all); err != nil {
		t.Fatal(err)
	}
	a, b := &all.Items[0], &all.Items[1]
	if a.Unread() != nil || a.Spec.Instances != 3 || a.Status.Phase != "Healthy" {
		t.Errorf("%+v: %v", a, a.Unread())
	}
	if b.Name != "b" || b.UID != "2" || b.Spec.Instances != 0 || b.Status.Phase != "" {
		t.Errorf("%+v", b)
	}
	why := b.Unread()
	for _, want := range []string{"Cluster b of namespace ns", "spec.failoverPolicy: ",
		"status.currentPrimaryTimestamp: ", "kubectl edit"} {
		if why == nil || !strings.Contains(why.Error(), want) {
			t.Errorf("%v lacks %q", why, want)
		}
	}
	if b.DeepCopy().Unread() == nil {
		t.Error("a copy forgets that it could not be read")
	}
}

func TestAnObjectThatIsReadableAgainIsRead(t *testing.T) {
	var c Cluster
	for _, text := range []string{unreadable, readable} {
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
	}
	if c.Unread() != nil || c.Name != "a" || c.Spec.Instances != 3 {
		t.Errorf("%+v: %v", c, c.Unread())
	}
}

func TestWhatCouldNotBeReadIsNoFieldOfTheAPI(t *testing.T) {
	var c Cluster
	if err := json.Unmarshal([]byte(readable), &c); err != nil {
		t.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if name != "metadata" && name != "spec" && name != "status" {
			t.Errorf("%s is sent", name)
		}
	}
	var back Cluster
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &back)
	if err != nil || back.Unread() != nil || back.Spec.Instances != 3 {
		t.Errorf("%+v: %v, %v", back, err, back.Unread())
	}
}

func TestBackupsAreReadAsFarAsTheyCanBe(t *testing.T) {
	var b Backup
	var s ScheduledBackup
	text := []byte(`{"metadata":{"name":"b"},"spec":{"jobTemplate":{"ttl":"1d"}}}`)
	if err := json.Unmarshal(text, &b); err != nil || b.Name != "b" || b.Unread() == nil {
		t.Errorf("%+v: %v", b, err)
	}
	if err := json.Unmarshal(text, &s); err != nil || s.Name != "b" || s.Unread() == nil {
		t.Errorf("%+v: %v", s, err)
	}
}
