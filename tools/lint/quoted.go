package main

import (
	"fmt"
	"go/constant"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// quoted finds a figure in a document behind which a comment, which no reader is shown, names the constant of the code
// that it is: 5 s<!-- core/agent.VerdictWait -->; or several that it is the sum of, with a + between. Without a unit
// it is a count.
var quoted = regexp.MustCompile(`([^<\n]*)<!-- ([a-z/]+\.\w+(?: \+ [a-z/]+\.\w+)*) -->`)

// figure is what stands before such a comment.
var figure = regexp.MustCompile(`(\d[\d,]*(?:\.\d+)?)(?: (ms|s|min|minutes|h|hours|KiB|MiB))?$`)

// measures are what units of documents are in the units of the code: nanoseconds, and bytes.
var measures = map[string]float64{"": 1, "ms": 1e6, "s": 1e9, "min": 60e9, "minutes": 60e9, "h": 3600e9,
	"hours": 3600e9, "KiB": 1 << 10, "MiB": 1 << 20}

// checkQuoted complains of figures that are not what the constant is that they name.
func checkQuoted(root string) (complaints []string, err error) {
	all := &constants{root: root, packages: map[string]map[string]definition{}}
	found := 0
	err = eachFile(filepath.Join(root, "docs"), ".md", func(path, text string) {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			found++
			if why := all.differ(m[1], m[2]); why != "" {
				complaints = append(complaints, path+": "+why)
			}
		}
	})
	if err == nil && found == 0 {
		err = fmt.Errorf("no document names a constant: see quoted in tools/lint/quoted.go")
	}
	return complaints, err
}

// differ tells why a text does not end with the sum of the constants; "" when it does.
func (c *constants) differ(text, names string) string {
	is := figure.FindStringSubmatch(text)
	if is == nil {
		return "no figure stands before <!-- " + names + " -->"
	}
	sum := constant.MakeInt64(0)
	for _, name := range strings.Split(names, " + ") {
		value, err := c.value(name)
		if err != nil {
			return err.Error()
		}
		sum = constant.BinaryOp(sum, token.ADD, value)
	}
	said := constant.BinaryOp(constant.MakeFromLiteral(strings.ReplaceAll(is[1], ",", ""), token.FLOAT, 0), token.MUL,
		constant.MakeFloat64(measures[is[2]]))
	if constant.Compare(said, token.EQL, sum) {
		return ""
	}
	unit := measures[is[2]]
	really, _ := constant.Float64Val(sum)
	return fmt.Sprintf("says %s, and %s is %.6g %s", is[0], names, really/unit, is[2])
}
