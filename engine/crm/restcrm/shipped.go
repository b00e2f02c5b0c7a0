package restcrm

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed connectors/*.yaml
var shipped embed.FS

// Shipped are the names of the descriptions in the binary, in order.
func Shipped() []string {
	files, err := shipped.ReadDir("connectors")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Document is the text of a description in the binary.
func Document(name string) ([]byte, error) {
	document, err := shipped.ReadFile(path.Join("connectors", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("no connector is called %q; there are %s", name, strings.Join(Shipped(), ", "))
	}
	return document, nil
}

// LoadShipped reads a description in the binary.
func LoadShipped(name string) (*Definition, error) {
	document, err := Document(name)
	if err != nil {
		return nil, err
	}
	return Load(name+".yaml", document)
}
