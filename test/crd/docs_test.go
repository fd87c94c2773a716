package crd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	// placeholder is an objectStore that a page shows elsewhere.
	placeholder = regexp.MustCompile(`(?m)\bobjectStore: \{\}.*$`)
)

// told is an object of this API in a page for users.
type told struct {
	where string
	// isWhole is set if it can be applied as it stands there, and not a part.
	isWhole bool
	text    string
}

// toldObjects are those in the blocks of YAML of all pages. What has no kind is of a Cluster.
func toldObjects(t *testing.T) (all []told) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("found %d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			for j, doc := range strings.Split("\n"+block[1], "\n---\n") {
				one := told{fmt.Sprintf("%s, block %d.%d", filepath.Base(page), i+1, j+1), false, doc}
				switch {
				case strings.Contains(doc, "\napiVersion: "+v1alpha1.GroupVersion.String()):
					one.isWhole = !strings.Contains(doc, "# ...")
				case strings.HasPrefix(doc, "\n    objectStore:"):
					one.text = "kind: Cluster\nspec:\n  backup:" + doc
				case strings.HasPrefix(doc, "\nspec:"):
					one.text = "kind: Cluster" + doc
				case !strings.HasPrefix(doc, "\nkind:"):
					continue // of Kubernetes
				}
				all = append(all, one)
			}
		}
	}
	return all
}

// written is an object as a user writes it. The types of the API themselves read on where something
// is wrong, and tell it.
type written[Spec any] struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       Spec              `json:"spec"`
}

// TestPagesShowFieldsThatThereAre decodes what the pages show as strictly as kubectl does.
func TestPagesShowFieldsThatThereAre(t *testing.T) {
	kinds := map[string]func() any{
		"Cluster":         func() any { return &written[v1alpha1.ClusterSpec]{} },
		"Backup":          func() any { return &written[v1alpha1.BackupSpec]{} },
		"ScheduledBackup": func() any { return &written[v1alpha1.ScheduledBackupSpec]{} },
	}
	all := toldObjects(t)
	if len(all) < 15 {
		t.Fatalf("only %d objects are found in the pages", len(all))
	}
	for _, one := range all {
		var of struct{ Kind string }
		if err := yaml.Unmarshal([]byte(one.text), &of); err != nil || kinds[of.Kind] == nil {
			t.Errorf("%s: a %q: %v", one.where, of.Kind, err)
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(one.text), kinds[of.Kind]()); err != nil {
			t.Errorf("%s: %v", one.where, err)
		}
	}
}

// TestAnAPIServerTakesWhatPagesShow has each whole object judged by schema and policies.
func TestAnAPIServerTakesWhatPagesShow(t *testing.T) {
	c := api(t)
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	for _, one := range toldObjects(t) {
		if !one.isWhole {
			continue
		}
		t.Run(one.where, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			text := placeholder.ReplaceAllString(one.text, "objectStore: "+somewhere)
			if err := yaml.UnmarshalStrict([]byte(text), &obj.Object); err != nil {
				t.Fatal(err)
			}
			obj.SetNamespace("default")
			if err := strict.Create(context.Background(), obj, client.DryRunAll); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}
