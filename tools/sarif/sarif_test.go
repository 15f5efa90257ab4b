// Package sarif validates the SARIF of "vramyard gate" against the schema of the standard.
package sarif

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaModule has the schema of SARIF 2.1.0 among its test data. The linter depends on it.
const schemaModule, schemaFile = "github.com/securego/gosec/v2", "report/sarif/testdata/sarif-schema-2.1.0.json"

func TestGateWritesSARIF(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", schemaModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(strings.TrimSpace(string(dir)), schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("../../cli/testdata/gate/gate.sarif")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	doc.(map[string]any)["runs"].([]any)[0].(map[string]any)["results"] = "none"
	if schema.Validate(doc) == nil {
		t.Error("results that are no list are valid")
	}
}
