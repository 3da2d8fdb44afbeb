// Writes what rapid type analysis says about calls: go run truth-go.go ROOT PACKAGE... > truth.tsv
//
// A row is the outermost named function around a call and the function that is called, each as a path beneath ROOT
// and the line of its name. Only functions that the analysis reaches from the packages' main functions have rows.
// Calls through interfaces and function values are `unknown`, by their lines: which function runs is decided later.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/callgraph/rta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

func main() {
	root := os.Args[1]
	config := &packages.Config{Mode: packages.LoadAllSyntax}
	loaded, err := packages.Load(config, os.Args[2:]...)
	if err != nil {
		panic(err)
	}
	program, all := ssautil.AllPackages(loaded, ssa.InstantiateGenerics)
	program.Build()
	var roots []*ssa.Function
	for _, it := range ssautil.MainPackages(all) {
		roots = append(roots, it.Func("init"), it.Func("main"))
	}
	spot := func(function *ssa.Function) (string, bool) {
		for function.Parent() != nil {
			function = function.Parent()
		}
		place := program.Fset.Position(function.Pos())
		path, err := filepath.Rel(root, place.Filename)
		if err != nil || strings.HasPrefix(path, "..") || function.Synthetic != "" || !function.Pos().IsValid() {
			return "", false
		}
		return fmt.Sprintf("%s:%d", path, place.Line), true
	}
	rows := map[string]bool{}
	for function := range rta.Analyze(roots, false).Reachable {
		from, ok := spot(function)
		if !ok {
			continue
		}
		for _, block := range function.Blocks {
			for _, instruction := range block.Instrs {
				site, ok := instruction.(ssa.CallInstruction)
				if !ok {
					continue
				}
				callee := site.Common().StaticCallee()
				if callee == nil || callee.Parent() != nil {
					line := program.Fset.Position(site.Pos()).Line
					rows[fmt.Sprintf("%s\tunknown:%d", from, line)] = true
					continue
				}
				if to, ok := spot(callee); ok {
					rows[from+"\t"+to] = true
				}
			}
		}
	}
	var sorted []string
	for row := range rows {
		sorted = append(sorted, row)
	}
	sort.Strings(sorted)
	fmt.Println(strings.Join(sorted, "\n"))
}
