package operator

import "testing"

func TestWithin(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		wanted, current any
		is              bool
	}{
		"the same":                         {m{"a": "1"}, m{"a": "1"}, true},
		"others' fields do not count":      {m{"a": "1"}, m{"a": "1", "b": "2"}, true},
		"a field is missing":               {m{"a": "1", "b": "2"}, m{"a": "1"}, false},
		"a field differs":                  {m{"a": m{"b": "1"}}, m{"a": m{"b": "2"}}, false},
		"empty is absent":                  {m{"a": m{}, "l": []any{}}, m{}, true},
		"a list with an item too much":     {m{"l": []any{"1"}}, m{"l": []any{"1", "2"}}, false},
		"a list item with others' fields":  {m{"l": []any{m{"a": "1"}}}, m{"l": []any{m{"a": "1", "b": "2"}}}, true},
		"a list where there should be map": {m{"l": m{"a": "1"}}, m{"l": []any{"1"}}, false},
		"nothing there":                    {m{"a": "1"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := within(c.wanted, c.current); got != c.is {
				t.Errorf("within(%v, %v) = %t", c.wanted, c.current, got)
			}
		})
	}
}

func TestOutgrown(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		owned  m
		wanted any
		is     bool
	}{
		"all is wanted":          {m{"f:a": m{"f:b": m{}}}, m{"a": m{"b": "1"}}, false},
		"more is wanted":         {m{"f:a": m{}}, m{"a": "1", "b": "2"}, false},
		"a field is not wanted":  {m{"f:a": m{}, "f:b": m{}}, m{"a": "1"}, true},
		"one below is not":       {m{"f:a": m{".": m{}, "f:b": m{}, "f:c": m{}}}, m{"a": m{"b": "1"}}, true},
		"none of them is":        {m{"f:a": m{"f:b": m{}}}, m{}, true},
		"the items of a list":    {m{"f:l": m{`k:{"port":1}`: m{"f:port": m{}}}}, m{"l": []any{m{"port": 1}}}, false},
		"the list is not wanted": {m{"f:l": m{`v:"x"`: m{}}}, m{}, true},
		"nothing is owned":       {m{}, m{"a": "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outgrown(c.owned, c.wanted); got != c.is {
				t.Errorf("outgrown(%v, %v) = %t", c.owned, c.wanted, got)
			}
		})
	}
}
