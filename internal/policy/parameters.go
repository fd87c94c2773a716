package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"cnmsql.co/internal/mysql"
)

// ParametersName is the name of the policy on spec.mysql.parameters.
const ParametersName = "cnmsql-cluster-parameters"

// Parameters refuses parameters of the table, in every spelling that mysqld
// takes, by name and with the reason. Parameters that are not touched are not
// judged: a longer table must not keep an older Cluster from being changed
// otherwise, or from being deleted. Those that are in the data of an established Cluster stay as
// they are, which holds for their removal, too.
func Parameters(table []mysql.OwnedParameter) *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(ParametersName, "clusters", admissionv1.Create, admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "parameters-set-or-changed",
		Expression: parametersOf("object") + " !=\n" + parametersOf("oldObject"),
	}}
	p.Spec.Variables = parameterVariables(table)
	p.Spec.Validations = []admissionv1.Validation{
		{
			Message:    "spec.mysql.parameters holds what is not the name of a parameter",
			Expression: "variables.misspelt.size() == 0",
			MessageExpression: "'spec.mysql.parameters: not the name of a parameter: \"' + variables.misspelt.map(k, " +
				"k.replace('\\n', ' ').replace('\\r', ' ')).join('\", \"') + " +
				"'\"; a name begins with a letter and holds letters, digits, _, - and . only'",
		},
		{
			Message:    "spec.mysql.parameters holds a value of more than one line; write it in one",
			Expression: "variables.broken.size() == 0",
			MessageExpression: "'spec.mysql.parameters: the value of ' + variables.broken.join(', ') + ' has more " +
				"than one line; write it in one'",
		},
		{
			Message:    "spec.mysql.parameters holds parameters that are the operator's; remove them",
			Expression: "variables.owned.size() == 0",
			MessageExpression: "'spec.mysql.parameters: ' + variables.owned.map(k, k + ' is not yours to set (' + " +
				"variables.reasons.filter(r, " + normalised + ".matches(r[0]))[0][1] + ')').join('; ') + '; remove ' " +
				"+ (variables.owned.size() == 1 ? 'it' : 'them')",
		},
		{
			Message:    "spec.mysql.parameters holds a value that is not allowed; choose another",
			Expression: "variables.exceeding.size() == 0",
			MessageExpression: "'spec.mysql.parameters: ' + variables.exceeding.map(k, k + ' ' + " +
				"variables.bounds.filter(b, " + normalised + ".matches(b[0]))[0][2]).join('; ')",
		},
		{
			Message: "spec.mysql.parameters: a parameter that shapes the data directory cannot be changed once the " +
				"data directory is made; set it back, or make a new Cluster with it",
			Expression: "variables.moved.size() == 0",
			MessageExpression: "'spec.mysql.parameters: ' + variables.moved.map(f, f[1] + ' shapes the data " +
				"directory and stays \"' + " + valuesOf("former") + "[0] + '\"').join('; ') + ': mysqld may not " +
				"start on the data with another value; set it back, or make a new Cluster with the other value and " +
				"load a logical dump into it'",
		},
	}
	return p
}

// parameterVariables are what is found of each kind that is refused.
func parameterVariables(table []mysql.OwnedParameter) []admissionv1.Variable {
	return []admissionv1.Variable{
		{Name: "parameters", Expression: parametersOf("object")},
		{Name: "former", Expression: parametersOf("oldObject")},
		{Name: "misspelt", Expression: fmt.Sprintf("variables.parameters.filter(k, !k.matches('%s'))",
			mysql.ParameterName)},
		{Name: "broken",
			Expression: `variables.parameters.filter(k, variables.parameters[k].matches('[\\r\\n\\x00]'))`},
		{Name: "owned", Expression: fmt.Sprintf("variables.parameters.filter(k, %s.matches('%s'))",
			normalised, pattern(table...))},
		{Name: "bounds", Expression: bounds(mysql.BoundParameters)},
		{Name: "exceeding", Expression: "variables.parameters.filter(k, variables.bounds.exists(b, " + normalised +
			".matches(b[0]) && !variables.parameters[k].lowerAscii().matches(b[1])))"},
		{Name: "fixed", Expression: fixed(mysql.FixedParameters)},
		{Name: "spellings", Expression: spellings(mysql.FixedParameters)},
		{Name: "moved", Expression: "oldObject != null && has(oldObject.status) && " +
			"has(oldObject.status.establishedAt) ? variables.fixed.filter(f, " + valuesOf("parameters") + " !=\n" +
			valuesOf("former") + ") : []"},
		{Name: "reasons", Expression: reasons(table)},
	}
}

// parametersOf are those of an object, which may be null.
func parametersOf(object string) string {
	return fmt.Sprintf("(%[1]s != null && has(%[1]s.spec.mysql) && has(%[1]s.spec.mysql.parameters) ? "+
		"%[1]s.spec.mysql.parameters : {})", object)
}

// fixed are a pattern of a name, the name, and the value where it is not set.
func fixed(table []mysql.FixedParameter) string {
	rows := make([]string, len(table))
	for i, f := range table {
		rows[i] = fmt.Sprintf("['%s', '%s', '%s']", pattern(mysql.OwnedParameter{Name: f.Name}), f.Name, f.Default)
	}
	return "[" + strings.Join(rows, ",\n") + "]"
}

// spellings are the values that stand for others, behind the name of their parameter.
func spellings(table []mysql.FixedParameter) string {
	var rows []string
	for _, f := range table {
		for _, spelling := range slices.Sorted(maps.Keys(f.Spellings)) {
			rows = append(rows, fmt.Sprintf("'%s=%s': '%s'", f.Name, spelling, f.Spellings[spelling]))
		}
	}
	return "{" + strings.Join(rows, ",\n") + "}"
}

// valuesOf are those that a variable's parameters give the fixed parameter f, in any spelling of the
// name; the value is that for which the one that is written stands.
func valuesOf(variable string) string {
	value := fmt.Sprintf("variables.%s[k].trim().lowerAscii()", variable)
	return fmt.Sprintf("(variables.%[1]s.exists(k, %[2]s.matches(f[0])) ? variables.%[1]s.filter(k, "+
		"%[2]s.matches(f[0])).map(k, (f[1] + '=' + %[3]s) in variables.spellings ? "+
		"variables.spellings[f[1] + '=' + %[3]s] : %[3]s) : [f[2]])", variable, normalised, value)
}

// bounds are a pattern of a name, one of its values, and what to say of another.
func bounds(table []mysql.BoundParameter) string {
	rows := make([]string, len(table))
	for i, b := range table {
		rows[i] = fmt.Sprintf("['%s', '%s', '%s']", pattern(mysql.OwnedParameter{Name: b.Name}), b.Allowed(),
			strings.ReplaceAll(b.Refusal(), "'", `\'`))
	}
	return "[" + strings.Join(rows, ",\n") + "]"
}

// normalised is the parameter k in the spelling of the table.
const normalised = "k.lowerAscii().replace('-', '_')"

// pattern matches the entries, also behind the words that mysqld takes before
// any name: loose_read_only is read_only.
func pattern(entries ...mysql.OwnedParameter) string {
	alternatives := make([]string, len(entries))
	for i, e := range entries {
		name, wild := strings.CutSuffix(e.Name, "*")
		alternatives[i] = regexp.QuoteMeta(name)
		if wild {
			alternatives[i] += ".*"
		}
	}
	return "^((loose|skip|disable|enable|maximum)_)*(" + strings.Join(alternatives, "|") + ")$"
}

// reasons is the table as CEL: pairs of a pattern and why. Entries of one
// reason share a pair, in the order of the table.
func reasons(table []mysql.OwnedParameter) string {
	var order []string
	byWhy := map[string][]mysql.OwnedParameter{}
	for _, e := range table {
		if byWhy[e.Why] == nil {
			order = append(order, e.Why)
		}
		byWhy[e.Why] = append(byWhy[e.Why], e)
	}
	pairs := make([]string, len(order))
	for i, why := range order {
		pairs[i] = fmt.Sprintf("['%s', '%s']", pattern(byWhy[why]...), strings.ReplaceAll(why, "'", `\'`))
	}
	return "[" + strings.Join(pairs, ",\n") + "]"
}
