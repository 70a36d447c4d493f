package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
)

// answer is what a client notes of a response.
type answer struct {
	status, declared string
	body             io.Reader
}

// fetchAll runs one request per URL, some at a time, and prints a line for each in the order of the URLs:
// "STATUS SIZE SHA256 CONTENT-LENGTH PATH", with "-" for what the protocol does not tell.
func fetchAll(options fetchOptions, request func(*url.URL) (answer, error)) error {
	lines := make([]string, len(options.urls))
	failures := make([]error, len(options.urls))
	slots := make(chan struct{}, options.parallel)
	var group sync.WaitGroup
	for index, url := range options.urls {
		slots <- struct{}{}
		group.Go(func() {
			lines[index], failures[index] = fetchOne(options, url, request)
			<-slots
		})
	}
	group.Wait()
	for index, failure := range failures {
		if failure != nil {
			return fmt.Errorf("%s: %w", options.urls[index], failure)
		}
	}
	fmt.Println(strings.Join(lines, "\n"))
	return nil
}

func fetchOne(options fetchOptions, url *url.URL, request func(*url.URL) (answer, error)) (string, error) {
	answer, err := request(url)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	var sink io.Writer = hash
	if options.out != "" {
		name := path.Base(url.Path)
		if name == "/" || name == "." {
			name = "index.html"
		}
		file, err := os.Create(path.Join(options.out, name))
		if err != nil {
			return "", err
		}
		defer file.Close()
		sink = io.MultiWriter(hash, file)
	}
	size, err := io.Copy(sink, answer.body)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %x %s %s", answer.status, size, hash.Sum(nil), answer.declared, url.Path), nil
}
