package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// proxyClient asks for everything that the upstreams of peers/README.md answer, through a reverse proxy.
type proxyClient struct {
	url    string
	http   *http.Client
	proto  string
	size   int64
	failed bool
}

type proxyEcho struct {
	Method   string      `json:"method"`
	Target   string      `json:"target"`
	Headers  [][2]string `json:"headers"`
	Length   int64       `json:"length"`
	Sha256   string      `json:"sha256"`
	Trailers [][2]string `json:"trailers"`
	State    string      `json:"state"`
}

func proxySuite(arguments []string) error {
	flags := flag.NewFlagSet("proxy-client", flag.ExitOnError)
	url := flags.String("url", "", "the proxy, `https://localhost:PORT`")
	ca := flags.String("ca", "", "the authority, PEM `file`")
	protocol := flags.String("protocol", "h3", "h1, h2 or h3")
	size := flags.Int64("size", 8<<20, "`bytes` of a large body")
	flags.Parse(arguments)
	options := trustOptions{ca: *ca}
	configuration, err := options.tlsConfig("", "localhost")
	if err != nil {
		return err
	}
	client := &proxyClient{url: *url, size: *size}
	client.http, client.proto, err = proxyTransport(*protocol, configuration)
	if err != nil {
		return err
	}
	client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, check := range proxyChecks {
		if err := check.run(client); err != nil {
			client.failed = true
			fmt.Printf("FAILED %s: %v\n", check.name, err)
		} else {
			fmt.Println("ok", check.name)
		}
	}
	if client.failed {
		os.Exit(1)
	}
	return nil
}

func proxyTransport(protocol string, configuration *tls.Config) (*http.Client, string, error) {
	configuration.NextProtos = nil
	switch protocol {
	case "h1":
		configuration.NextProtos = []string{"http/1.1"}
		return overTCP(configuration, false), "HTTP/1.1", nil
	case "h2":
		configuration.NextProtos = []string{"h2"}
		return overTCP(configuration, true), "HTTP/2.0", nil
	case "h3":
		transport := &http3.Transport{TLSClientConfig: configuration, QUICConfig: quicConfig(), DisableCompression: true}
		return &http.Client{Transport: transport}, "HTTP/3.0", nil
	}
	return nil, "", fmt.Errorf("%q is not h1, h2 or h3", protocol)
}

func overTCP(configuration *tls.Config, second bool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:       configuration,
		DisableCompression:    true,
		ForceAttemptHTTP2:     second,
		ExpectContinueTimeout: 5 * time.Second,
	}}
}

var proxyChecks = []struct {
	name string
	run  func(*proxyClient) error
}{
	{"methods", (*proxyClient).methods},
	{"bodies of every size", (*proxyClient).bodies},
	{"a large body down", (*proxyClient).largeDown},
	{"a large body up", (*proxyClient).largeUp},
	{"trailers both ways", (*proxyClient).trailers},
	{"redirects and statuses", (*proxyClient).statuses},
	{"permission to send", (*proxyClient).expectContinue},
	{"early hints", (*proxyClient).hints},
	{"events one by one", (*proxyClient).events},
	{"an aborted upload reaches the upstream", (*proxyClient).abortedUpload},
	{"an aborted download reaches the upstream", (*proxyClient).abortedDownload},
	{"a broken response is an error", (*proxyClient).broken},
	{"an upstream that hangs up is a bad gateway", (*proxyClient).hangup},
	{"a hundred at once", (*proxyClient).many},
}

func proxyPattern(length int64) io.Reader {
	pattern := make([]byte, 65521)
	for index := range pattern {
		pattern[index] = byte(index*31 + (index>>8)*7)
	}
	return io.LimitReader(&repeated{whole: pattern}, length)
}

type repeated struct {
	whole []byte
	at    int
}

func (repeated *repeated) Read(into []byte) (int, error) {
	count := copy(into, repeated.whole[repeated.at:])
	repeated.at = (repeated.at + count) % len(repeated.whole)
	return count, nil
}

func proxyHash(reader io.Reader) (string, int64, error) {
	hash := sha256.New()
	count, err := io.Copy(hash, reader)
	return hex.EncodeToString(hash.Sum(nil)), count, err
}

func proxyExpect(what string, seen, wanted any) error {
	if fmt.Sprint(seen) != fmt.Sprint(wanted) {
		return fmt.Errorf("%s: expected %v, came %v", what, wanted, seen)
	}
	return nil
}

func (client *proxyClient) do(request *http.Request) (*http.Response, error) {
	response, err := client.http.Do(request)
	if err == nil {
		err = proxyExpect("the protocol", response.Proto, client.proto)
	}
	return response, err
}

func (client *proxyClient) ask(method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	request, err := http.NewRequest(method, client.url+path, body)
	if err != nil {
		return nil, err
	}
	for index := 0; index+1 < len(headers); index += 2 {
		request.Header.Add(headers[index], headers[index+1])
	}
	return client.do(request)
}

func (client *proxyClient) echo(method, path string, body io.Reader, headers ...string) (proxyEcho, error) {
	var echo proxyEcho
	response, err := client.ask(method, path, body, headers...)
	if err != nil {
		return echo, err
	}
	defer response.Body.Close()
	if err := proxyExpect("the status of "+path, response.StatusCode, 200); err != nil {
		return echo, err
	}
	return echo, json.NewDecoder(response.Body).Decode(&echo)
}

func (client *proxyClient) same(path string, length int64) error {
	response, err := client.ask("GET", path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	seen, count, err := proxyHash(response.Body)
	if err != nil {
		return err
	}
	wanted, _, _ := proxyHash(proxyPattern(length))
	return errors.Join(proxyExpect("the length", count, length), proxyExpect("the hash", seen, wanted))
}

func (client *proxyClient) methods() error {
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"} {
		var body io.Reader
		length := 0
		if slices.Contains([]string{"POST", "PUT", "PATCH"}, method) {
			body, length = strings.NewReader("0123456789"), 10
		}
		echo, err := client.echo(method, "/anything?a=%20b", body)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		err = errors.Join(proxyExpect("the method", echo.Method, method), proxyExpect("the length", echo.Length, length))
		if err != nil {
			return err
		}
	}
	response, err := client.ask("HEAD", "/bytes/12345", nil)
	if err != nil {
		return err
	}
	response.Body.Close()
	return proxyExpect("the length that HEAD tells", response.ContentLength, 12345)
}

func (client *proxyClient) bodies() error {
	for _, length := range []int64{0, 1, 1000, 65536, 1 << 20} {
		wanted, _, _ := proxyHash(proxyPattern(length))
		// Wrapped, so that the length is not known.
		echo, err := client.echo("POST", "/anything", io.MultiReader(proxyPattern(length)))
		if err != nil {
			return err
		}
		err = errors.Join(
			proxyExpect("the hash of an upload", echo.Sha256, wanted),
			client.same(fmt.Sprintf("/bytes/%d", length), length),
			client.same(fmt.Sprintf("/chunked/%d", length), length),
		)
		if err != nil {
			return fmt.Errorf("%d bytes: %w", length, err)
		}
	}
	return nil
}

func (client *proxyClient) largeDown() error {
	return client.same(fmt.Sprintf("/bytes/%d", client.size), client.size)
}

func (client *proxyClient) largeUp() error {
	wanted, _, _ := proxyHash(proxyPattern(client.size))
	echo, err := client.echo("POST", "/anything", io.MultiReader(proxyPattern(client.size)))
	if err != nil {
		return err
	}
	return errors.Join(proxyExpect("the length", echo.Length, client.size), proxyExpect("the hash", echo.Sha256, wanted))
}

func (client *proxyClient) trailers() error {
	request, err := http.NewRequest("POST", client.url+"/anything", io.MultiReader(strings.NewReader("content")))
	if err != nil {
		return err
	}
	request.Trailer = http.Header{"X-Sum": {"7"}}
	response, err := client.do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var echo proxyEcho
	if err := json.NewDecoder(response.Body).Decode(&echo); err != nil {
		return err
	}
	// quic-go's client sends no trailers.
	if client.proto != "HTTP/3.0" {
		if err := proxyExpect("the trailers that arrived", echo.Trailers, "[[x-sum 7]]"); err != nil {
			return err
		}
	}
	response, err = client.ask("GET", "/trailers", nil, "TE", "trailers")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	sum, _, err := proxyHash(response.Body)
	return errors.Join(err, proxyExpect("x-checksum", response.Trailer.Get("x-checksum"), sum),
		proxyExpect("x-second", response.Trailer.Get("x-second"), "2"))
}

func (client *proxyClient) statuses() error {
	for _, status := range []int{200, 201, 204, 301, 304, 400, 404, 418, 500, 503} {
		response, err := client.ask("GET", fmt.Sprintf("/status/%d", status), nil)
		if err != nil {
			return err
		}
		response.Body.Close()
		if err := proxyExpect("the status", response.StatusCode, status); err != nil {
			return err
		}
	}
	response, err := client.ask("GET", "/redirect/2", nil)
	if err != nil {
		return err
	}
	response.Body.Close()
	return proxyExpect("the place", response.Header.Get("location"), "/redirect/1")
}

func (client *proxyClient) expectContinue() error {
	echo, err := client.echo("POST", "/anything", strings.NewReader(strings.Repeat("y", 5000)), "Expect", "100-continue")
	if err := errors.Join(err, proxyExpect("the length", echo.Length, 5000)); err != nil {
		return err
	}
	body := &counted{reader: proxyPattern(10 << 20)}
	response, err := client.ask("POST", "/reject", body, "Expect", "100-continue")
	if err != nil {
		return err
	}
	response.Body.Close()
	// quic-go does not wait; over HTTP/1.1 Go sends what nobody wants rather than lose a connection that stays open.
	waits := client.proto == "HTTP/2.0" || client.proto == "HTTP/1.1" && response.Close
	if waits && body.count() > 0 {
		return fmt.Errorf("%d bytes were sent without permission", body.count())
	}
	return proxyExpect("the status", response.StatusCode, 413)
}

type counted struct {
	mutex  sync.Mutex
	reader io.Reader
	read   int64
}

func (counted *counted) Read(into []byte) (int, error) {
	counted.mutex.Lock()
	defer counted.mutex.Unlock()
	count, err := counted.reader.Read(into)
	counted.read += int64(count)
	return count, err
}

func (counted *counted) count() int64 {
	counted.mutex.Lock()
	defer counted.mutex.Unlock()
	return counted.read
}

func (client *proxyClient) hints() error {
	request, err := http.NewRequest("GET", client.url+"/hints", nil)
	if err != nil {
		return err
	}
	var hinted []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
		hinted = append(hinted, fmt.Sprint(status, " ", header.Get("link")))
		return nil
	}}
	response, err := client.do(request.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, proxyExpect("the final response", string(body), "hinted\n")); err != nil {
		return err
	}
	// A proxy may keep hints to itself; what it hands on must be right.
	for _, hint := range hinted {
		if err := proxyExpect("the hint", hint, "103 </style.css>; rel=preload"); err != nil {
			return err
		}
	}
	return nil
}

func (client *proxyClient) events() error {
	name := rand.Text()
	response, err := client.ask("GET", "/events/"+name+"?n=5", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	seen, lines := 0, bufio.NewScanner(response.Body)
	for lines.Scan() {
		if id, found := strings.CutPrefix(lines.Text(), "id: "); found {
			seen++
			acknowledged, err := client.ask("GET", "/ack/"+name+"/"+id, nil)
			if err != nil {
				return err
			}
			acknowledged.Body.Close()
		}
	}
	return errors.Join(lines.Err(), proxyExpect("the events", seen, 5))
}

func (client *proxyClient) waitFor(name, state string) error {
	var echo proxyEcho
	for range 300 {
		var err error
		if echo, err = client.echo("GET", "/ended/"+name, nil); err != nil {
			return err
		}
		if echo.State == state {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return proxyExpect("the upstream's word of "+name, echo.State, state)
}

func (client *proxyClient) abortedUpload() error {
	name := rand.Text()
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		response, err := client.ask("POST", "/upload/"+name, reader)
		if err == nil && response.StatusCode >= 300 {
			err = fmt.Errorf("status %d", response.StatusCode)
		}
		done <- err
	}()
	if _, err := writer.Write(bytes.Repeat([]byte("u"), 1<<20)); err != nil {
		return err
	}
	if err := client.waitFor(name, "begun"); err != nil {
		return err
	}
	writer.CloseWithError(errors.New("given up"))
	if err := <-done; err == nil {
		return errors.New("an upload that was given up succeeded")
	}
	return client.waitFor(name, "aborted")
}

func (client *proxyClient) abortedDownload() error {
	name := rand.Text()
	response, err := client.ask("GET", "/endless/"+name, nil)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, response.Body, 1<<20); err != nil {
		return err
	}
	response.Body.Close()
	return client.waitFor(name, "aborted")
}

func (client *proxyClient) broken() error {
	response, err := client.ask("GET", "/broken", nil)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err == nil {
		return errors.New("a response that broke off was taken for whole")
	}
	return nil
}

func (client *proxyClient) hangup() error {
	response, err := client.ask("POST", "/close", strings.NewReader("once"))
	if err != nil {
		return err
	}
	response.Body.Close()
	return proxyExpect("the status", response.StatusCode, 502)
}

func (client *proxyClient) many() error {
	errs := make(chan error, 100)
	for number := range int64(100) {
		go func() { errs <- client.same(fmt.Sprintf("/bytes/%d", 1000+number), 1000+number) }()
	}
	var all error
	for range 100 {
		all = errors.Join(all, <-errs)
	}
	return all
}
