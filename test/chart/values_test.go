package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestValuesThatTheChartDoesNotHaveAreRefused holds of slips that Helm would install without a word otherwise.
func TestValuesThatTheChartDoesNotHaveAreRefused(t *testing.T) {
	wrong := map[string]string{
		`replica=1`:                        `'': additional properties 'replica' not allowed`,
		`image.repo="x"`:                   `'/image': additional properties 'repo' not allowed`,
		`alerts.enable=true`:               `'/alerts': additional properties 'enable' not allowed`,
		`crds.keeps=true`:                  `'/crds': additional properties 'keeps' not allowed`,
		`namespace.created=true`:           `'/namespace': additional properties 'created' not allowed`,
		`resources.limit={"memory":"1"}`:   `'/resources': additional properties 'limit' not allowed`,
		`restrictSecurityContexts="false"`: `'/restrictSecurityContexts': got string, want boolean`,
		`replicas="2"`:                     `'/replicas': got string, want integer`,
		`image.tag=20261128`:               `'/image/tag': got number, want string`,
		`image.pullPolicy="Allways"`:       `'/image/pullPolicy': value must be one of`,
		`logLevel="verbose"`:               `'/logLevel': value must be one of`,
		`defaultImage=""`:                  `'/defaultImage': minLength`,
		`podLabels.number=1`:               `'/podLabels/number': got number, want string`,
		`imagePullSecrets=["name"]`:        `'/imagePullSecrets/0': got string, want object`,
	}
	_, err := render(t, slices.Sorted(maps.Keys(wrong))...)
	if err == nil {
		t.Fatal("none is refused")
	}
	for value, why := range wrong {
		if !strings.Contains(err.Error(), why) {
			t.Errorf("%s is not refused: %v", value, err)
		}
	}
	if _, err := render(t, `restrictSecurityContext=false`); err == nil {
		t.Error("restrictSecurityContext, which lacks a letter, is not refused")
	}
}

// TestValuesThatTheChartHasAreTaken holds of one of each kind, and of what Helm adds for a chart within another.
func TestValuesThatTheChartHasAreTaken(t *testing.T) {
	all, err := render(t, `global={"x":1}`, `replicas=1`,
		`image={"repository":"r/cnmsql","tag":"0.1.1","pullPolicy":"Always"}`, `imagePullSecrets=[{"name":"pull"}]`,
		`defaultImage="mysql:8.4"`, `logLevel="debug"`, `crds={"enabled":false,"keep":false}`,
		`restrictSecurityContexts=false`, `namespace.create=true`, `podLabels={"a":"b"}`, `podAnnotations={"a":"b"}`,
		`resources={"requests":{"cpu":1},"limits":{"memory":"1Gi"},"claims":[{"name":"x"}]}`,
		`resources.limits.memory=null`, `nodeSelector={"a":"b"}`, `tolerations=[{"operator":"Exists"}]`,
		`priorityClassName="high"`, `alerts={"enabled":true,"labels":{"release":"prometheus"}}`)
	if err != nil {
		t.Fatal(err)
	}
	var pods appsv1.Deployment
	if !find(t, all, "Deployment", &pods) || pods.Spec.Template.Spec.Containers[0].Image != "r/cnmsql:0.1.1" {
		t.Errorf("the operator's image is another: %+v", pods.Spec.Template.Spec.Containers)
	}
}

// schema is what of a JSON schema tells which names it takes.
type schema struct {
	AdditionalProperties any
	Properties           map[string]schema
}

// TestTheSchemaHasTheNamesOfTheValues holds both ways: a name that values.yaml has not is read by nobody.
func TestTheSchemaHasTheNamesOfTheValues(t *testing.T) {
	var is schema
	values := map[string]any{}
	text, err := os.ReadFile(filepath.Join(root, "charts/cnmsql/values.schema.json"))
	if err == nil {
		err = json.Unmarshal(text, &is)
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(filepath.Join(root, "charts/cnmsql/values.yaml")); err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(is.Properties, "global")
	delete(is.Properties["resources"].Properties, "claims")
	sameNames(t, "", is, values)
	for _, set := range setInDocuments(t) {
		at := any(values)
		for name := range strings.SplitSeq(set, ".") {
			within, is := at.(map[string]any)
			if at, is = within[name], is && within[name] != nil; !is {
				t.Errorf("a document has --set %s, and the chart has no such value", set)
				break
			}
		}
	}
}

func sameNames(t *testing.T, path string, is schema, values map[string]any) {
	t.Helper()
	if is.AdditionalProperties != false {
		t.Errorf("%q takes any name", path)
	}
	for name, of := range is.Properties {
		value, has := values[name]
		if !has {
			t.Errorf("the schema has %s%s, and values.yaml has not", path, name)
		}
		if within, nested := value.(map[string]any); nested && len(of.Properties) > 0 {
			sameNames(t, path+name+".", of, within)
		}
	}
	for name := range values {
		if _, has := is.Properties[name]; !has {
			t.Errorf("values.yaml has %s%s, and the schema has not", path, name)
		}
	}
}

// setInDocuments are the names that readers are told to set.
func setInDocuments(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`--set ([A-Za-z.]+)=`)
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	if len(names) < 3 {
		t.Errorf("the documents have %q set: are these all?", names)
	}
	return names
}
