package oldest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	policycel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// expression is one of a policy's, as the API server's compiler takes it.
type expression struct {
	name, text string
	returns    *cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.returns} }

// TestTheOldestKubernetesCompilesThePolicies holds each expression of the admission policies against what
// the oldest promised Kubernetes takes from a policy that is new to it.
func TestTheOldestKubernetesCompilesThePolicies(t *testing.T) {
	for _, p := range installed[admissionv1.ValidatingAdmissionPolicy](t, "ValidatingAdmissionPolicy") {
		compiler, err := policycel.NewCompositedCompiler(oldest(t))
		if err != nil {
			t.Fatal(err)
		}
		checks := policycel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
		messages := policycel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil}
		for _, v := range p.Spec.Variables {
			e := expression{v.Name, v.Expression, cel.AnyType}
			report(t, p.Name, e, compiler.CompileAndStoreVariable(e, checks, environment.NewExpressions))
		}
		for _, c := range p.Spec.MatchConditions {
			e := expression{c.Name, c.Expression, cel.BoolType}
			report(t, p.Name, e, compiler.CompileCELExpression(e, checks, environment.NewExpressions))
		}
		for i, v := range p.Spec.Validations {
			e := expression{fmt.Sprintf("validations[%d]", i), v.Expression, cel.BoolType}
			report(t, p.Name, e, compiler.CompileCELExpression(e, checks, environment.NewExpressions))
			if v.MessageExpression == "" {
				continue
			}
			e = expression{fmt.Sprintf("validations[%d].messageExpression", i), v.MessageExpression, cel.StringType}
			report(t, p.Name, e, compiler.CompileCELExpression(e, messages, environment.NewExpressions))
		}
		for _, a := range p.Spec.AuditAnnotations {
			t.Errorf("%s: the audit annotation %s is not tried here: add it", p.Name, a.Key)
		}
	}
}

func report(t *testing.T, policy string, e expression, is policycel.CompilationResult) {
	t.Helper()
	if is.Error != nil {
		t.Errorf("%s, %s: %s\n%v", policy, e.name, e.text, is.Error)
	}
}

// TestTheOldestKubernetesCompilesTheRules holds the rules of the CustomResourceDefinitions against the same.
func TestTheOldestKubernetesCompilesTheRules(t *testing.T) {
	type definition = apiextensionsv1.CustomResourceDefinition
	rules := 0
	for _, crd := range installed[definition](t, "CustomResourceDefinition") {
		for _, v := range crd.Spec.Versions {
			var props apiextensions.JSONSchemaProps
			err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
				v.Schema.OpenAPIV3Schema, &props, nil)
			if err != nil {
				t.Fatal(err)
			}
			s, err := schema.NewStructural(&props)
			if err != nil {
				t.Fatal(err)
			}
			rules += compileRules(t, oldest(t), crd.Spec.Names.Kind, s, model.SchemaDeclType(s, true))
		}
	}
	if rules == 0 {
		t.Error("no rule was found")
	}
}

// compileRules compiles the rules of a schema and of all below it, and returns how many there were.
func compileRules(
	t *testing.T, env *environment.EnvSet, path string, s *schema.Structural, is *apiservercel.DeclType,
) int {
	t.Helper()
	results, err := schemacel.Compile(s, is, celconfig.PerCallLimit, env, schemacel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for i, result := range results {
		if result.Error != nil {
			t.Errorf("%s: %s\n%v", path, s.XValidations[i].Rule, result.Error)
		}
		if result.MessageExpressionError != nil {
			t.Errorf("%s: %s\n%v", path, s.XValidations[i].MessageExpression, result.MessageExpressionError)
		}
	}
	rules := len(results)
	for name, below := range s.Properties {
		rules += compileRules(t, env, path+"."+name, &below, model.SchemaDeclType(&below, below.XEmbeddedResource))
	}
	if s.Items != nil {
		rules += compileRules(t, env, path+"[]", s.Items, model.SchemaDeclType(s.Items, s.Items.XEmbeddedResource))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		below := s.AdditionalProperties.Structural
		rules += compileRules(t, env, path+"{}", below, model.SchemaDeclType(below, below.XEmbeddedResource))
	}
	return rules
}

var root = filepath.Join("..", "..")

// oldest returns what an expression that is new to the oldest promised Kubernetes may use: what the release
// before it has, so that an API server can be taken back by one.
func oldest(t *testing.T) *environment.EnvSet {
	t.Helper()
	chart, err := os.ReadFile(filepath.Join(root, "charts", "cnmsql", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	promised := regexp.MustCompile(`(?m)^kubeVersion: ">=(1\.\d+)\.0-0"$`).FindSubmatch(chart)
	if promised == nil {
		t.Fatal("Chart.yaml promises no oldest Kubernetes in the form that is read here")
	}
	is := version.MustParseGeneric(string(promised[1]))
	return environment.MustBaseEnvSet(is.SubtractMinor(1))
}

// installed returns the objects of a kind in the rendered manifest.
func installed[T any](t *testing.T, kind string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "dist", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var is struct{ Kind string }
		if err := yaml.Unmarshal(document, &is); err != nil {
			t.Fatal(err)
		}
		if is.Kind != kind {
			continue
		}
		var obj T
		if err := yaml.Unmarshal(document, &obj); err != nil {
			t.Fatal(err)
		}
		all = append(all, obj)
	}
	if len(all) == 0 {
		t.Fatalf("the manifest has no %s", kind)
	}
	return all
}
