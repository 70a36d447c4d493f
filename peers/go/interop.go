package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"
	_ "unsafe" // for the cipher suites

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// The interop runner's contract: the environment says what to do, and 127 is the status for what is not supported.
const unsupported = 127

// crypto/tls has no setting for these in TLS 1.3.
//
//go:linkname suites crypto/tls.defaultCipherSuitesTLS13
var suites []uint16

//go:linkname suitesNoAES crypto/tls.defaultCipherSuitesTLS13NoAES
var suitesNoAES []uint16

type interopOptions struct {
	testcase, www, downloads, certs, listen string
	tls                                     *tls.Config
	quic                                    *quic.Config
}

func interop(arguments []string) error {
	options := interopOptions{testcase: os.Getenv("TESTCASE"), quic: quicConfig()}
	flags := flag.NewFlagSet("interop", flag.ExitOnError)
	flags.StringVar(&options.www, "www", "/www", "the `folder` to serve")
	flags.StringVar(&options.downloads, "downloads", "/downloads", "the `folder` for what is fetched")
	flags.StringVar(&options.certs, "certs", "/certs", "the `folder` with cert.pem and priv.key")
	flags.StringVar(&options.listen, "listen", ":443", "the `address` to listen on")
	// For a preferred address, which quic-go's servers do not have.
	flags.String("also-listen", "", "ignored")
	flags.String("preferred-v4", "", "ignored")
	flags.Parse(arguments)
	options.tls = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{hqALPN}}
	if name := os.Getenv("SSLKEYLOGFILE"); name != "" {
		file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		options.tls.KeyLogWriter = file
	}
	options.quic.MaxIncomingStreams = 100
	options.quic.HandshakeIdleTimeout = time.Minute
	switch options.testcase {
	case "handshake", "transfer", "retry", "resumption", "zerortt", "multiconnect", "http3", "keyupdate", "ecn":
	case "chacha20":
		suites = []uint16{tls.TLS_CHACHA20_POLY1305_SHA256}
		suitesNoAES = suites
	default:
		fmt.Fprintln(os.Stderr, "peer: unsupported test case", options.testcase)
		os.Exit(unsupported)
	}
	if os.Getenv("ROLE") == "server" {
		return options.serve()
	}
	return options.fetch(strings.Fields(os.Getenv("REQUESTS")))
}

func (options *interopOptions) serve() error {
	certificate, err := tls.LoadX509KeyPair(path.Join(options.certs, "cert.pem"), path.Join(options.certs, "priv.key"))
	if err != nil {
		return err
	}
	options.tls.Certificates = []tls.Certificate{certificate}
	options.quic.Allow0RTT = options.testcase == "zerortt"
	if options.testcase == "http3" {
		options.tls = http3.ConfigureTLSConfig(options.tls)
	}
	socket, err := listenUDP(options.listen)
	if err != nil {
		return err
	}
	transport := &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return options.testcase == "retry" },
	}
	listener, err := transport.ListenEarly(options.tls, options.quic)
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	if options.testcase == "http3" {
		server := http3.Server{Handler: http.FileServer(http.Dir(options.www))}
		return server.ServeListener(listener)
	}
	return answerStreams(listener, func(stream *quic.Stream) { hqAnswer(stream, options.www) })
}

func (options *interopOptions) fetch(requests []string) error {
	var urls []*url.URL
	for _, request := range requests {
		parsed, err := url.Parse(request)
		if err != nil {
			return err
		}
		urls = append(urls, parsed)
	}
	switch options.testcase {
	case "http3":
		transport := &http3.Transport{TLSClientConfig: options.tls, QUICConfig: options.quic}
		options.tls.NextProtos = nil
		defer transport.Close()
		return options.all(urls, func(url *url.URL) (io.Reader, error) {
			response, err := transport.RoundTrip(&http.Request{Method: "GET", URL: url, Host: url.Host, Header: http.Header{}})
			if err != nil {
				return nil, err
			}
			return response.Body, nil
		})
	case "multiconnect":
		for index := range urls {
			if err := options.connection(urls[index:index+1], false); err != nil {
				return err
			}
		}
		return nil
	case "resumption", "zerortt":
		tickets := &ticketCache{tls.NewLRUClientSessionCache(1), make(chan struct{}, 100)}
		options.tls.ClientSessionCache = tickets
		if err := options.connection(urls[:1], false); err != nil {
			return err
		}
		select {
		case <-tickets.arrived:
		case <-time.After(10 * time.Second):
			return errors.New("no session ticket came")
		}
		return options.connection(urls[1:], options.testcase == "zerortt")
	}
	return options.connection(urls, false)
}

// ticketCache tells when a ticket arrives.
type ticketCache struct {
	tls.ClientSessionCache
	arrived chan struct{}
}

func (cache *ticketCache) Put(key string, state *tls.ClientSessionState) {
	cache.ClientSessionCache.Put(key, state)
	if state != nil {
		cache.arrived <- struct{}{}
	}
}

// connection fetches everything over one connection, and does not wait for the handshake's end if early.
func (options *interopOptions) connection(urls []*url.URL, early bool) error {
	connection, err := quic.DialAddrEarly(context.Background(), urls[0].Host, options.tls, options.quic)
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "")
	if !early {
		select {
		case <-connection.HandshakeComplete():
		case <-connection.Context().Done():
			return context.Cause(connection.Context())
		}
	}
	return options.all(urls, func(url *url.URL) (io.Reader, error) {
		stream, err := connection.OpenStreamSync(context.Background())
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintf(stream, "GET %s\r\n", url.Path); err != nil {
			return nil, err
		}
		return stream, stream.Close()
	})
}

// all runs the requests at the same time and keeps the answers.
func (options *interopOptions) all(urls []*url.URL, request func(*url.URL) (io.Reader, error)) error {
	failures := make([]error, len(urls))
	var group sync.WaitGroup
	for index, url := range urls {
		group.Go(func() {
			failures[index] = func() error {
				body, err := request(url)
				if err != nil {
					return err
				}
				file, err := os.Create(path.Join(options.downloads, path.Base(url.Path)))
				if err != nil {
					return err
				}
				defer file.Close()
				_, err = io.Copy(file, body)
				return err
			}()
		})
	}
	group.Wait()
	return errors.Join(failures...)
}
