package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/quic-go/quic-go"
)

// HTTP/0.9 over QUIC: one "GET /path" per bidirectional stream, answered with the bare file.
const hqALPN = "hq-interop"

func hqServer(arguments []string) error {
	options := parseServe("hq-server", arguments)
	listener, err := options.listener(hqALPN)
	if err != nil {
		return err
	}
	return answerStreams(listener, func(stream *quic.Stream) { hqAnswer(stream, options.root) })
}

func hqAnswer(stream *quic.Stream, root string) {
	line, err := bufio.NewReader(stream).ReadString('\n')
	if err != nil && err != io.EOF {
		return
	}
	name, found := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "GET ")
	file, err := os.Open(path.Join(root, path.Clean("/"+name)))
	if !found || err != nil {
		stream.CancelWrite(404)
		return
	}
	defer file.Close()
	if _, err := io.Copy(stream, file); err == nil {
		stream.Close()
	}
}

func hqClient(arguments []string) error {
	options, err := parseFetch("hq-client", arguments)
	if err != nil {
		return err
	}
	first := options.urls[0]
	connection, err := connect(&options.trust, hqALPN, first.Hostname(), first.Port())
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "")
	return fetchAll(options, func(url *url.URL) (answer, error) {
		stream, err := connection.OpenStreamSync(context.Background())
		if err != nil {
			return answer{}, err
		}
		if _, err := fmt.Fprintf(stream, "GET %s\r\n", url.Path); err != nil {
			return answer{}, err
		}
		return answer{"-", "-", stream}, stream.Close()
	})
}
