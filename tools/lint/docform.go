package main

import (
	"go/ast"
	"strings"
)

// docForms finds doc comments that begin with the name and a colon. What follows such a colon is
// an assertion about the world: the reader has to find out whether the function asks for it, does
// it or ends it.
func (f *finder) docForms(file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			f.docForm(decl.Doc, decl.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				f.specForm(decl.Doc, spec)
			}
		}
	}
}

// specForm looks at the comment of a type, a constant or a variable, and at that of its group.
func (f *finder) specForm(group *ast.CommentGroup, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		f.docForm(group, spec.Name)
		f.docForm(spec.Doc, spec.Name)
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			f.docForm(group, name)
			f.docForm(spec.Doc, name)
		}
	}
}

func (f *finder) docForm(doc *ast.CommentGroup, name *ast.Ident) {
	if !strings.HasPrefix(doc.Text(), name.Name+":") {
		return
	}
	rule := "doc-form"
	if strings.HasSuffix(f.path, "_test.go") {
		rule = "test-doc-form"
	}
	f.add(rule, f.line(doc.Pos()), "%s:", name.Name)
}
