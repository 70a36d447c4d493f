// Command peer is quic-go as a peer to test against.
//
// Its face is the same as that of every other peer program; peers/README.md describes it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

type role struct {
	name string
	run  func(arguments []string) error
}

var roles = []role{
	{"h3-server", h3Server},
	{"h3-client", h3Client},
	{"hq-server", hqServer},
	{"hq-client", hqClient},
	{"perf-server", perfServer},
	{"perf-client", perfClient},
	{"proxy-client", proxySuite},
	{"interop", interop},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	names := ""
	for _, role := range roles {
		if len(arguments) > 0 && arguments[0] == role.name {
			return role.run(arguments[1:])
		}
		names += " " + role.name
	}
	return errors.New("the first argument is one of" + names)
}

// serveOptions says how a server is started.
type serveOptions struct {
	listen, cert, key, root, cipher string
}

func parseServe(name string, arguments []string) serveOptions {
	var options serveOptions
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	flags.StringVar(&options.listen, "listen", "127.0.0.1:0", "the `address` to listen on")
	flags.StringVar(&options.cert, "cert", "", "the certificate chain, PEM `file`")
	flags.StringVar(&options.key, "key", "", "the private key, PEM `file`")
	flags.StringVar(&options.root, "root", "", "the `folder` to serve")
	flags.StringVar(&options.cipher, "cipher", "aes128", "for perf-server; there is no `other`")
	flags.Parse(arguments)
	return options
}

func (options serveOptions) tlsConfig(alpn string) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(options.cert, options.key)
	return &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{alpn}}, err
}

func (options serveOptions) listener(alpn string) (*quic.Listener, error) {
	configuration, err := options.tlsConfig(alpn)
	if err != nil {
		return nil, err
	}
	listener, err := quic.ListenAddr(options.listen, configuration, quicConfig())
	if err == nil {
		fmt.Println("listening", listener.Addr())
	}
	return listener, err
}

// acceptor is what a listener of connections does.
type acceptor interface {
	Accept(context.Context) (*quic.Conn, error)
}

// answerStreams answers every bidirectional stream of every connection, until there are no more connections.
func answerStreams(listener acceptor, answer func(*quic.Stream)) error {
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go answer(stream)
			}
		}()
	}
}

// listenUDP opens a socket at an address, "HOST:PORT".
func listenUDP(address string) (*net.UDPConn, error) {
	resolved, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	return net.ListenUDP("udp", resolved)
}

// trustOptions says whom a client trusts.
type trustOptions struct {
	ca       string
	insecure bool
}

func (options *trustOptions) declare(flags *flag.FlagSet) {
	flags.StringVar(&options.ca, "ca", "", "the certificate authority to trust, PEM `file`")
	flags.BoolVar(&options.insecure, "insecure", false, "trust every certificate")
}

func (options *trustOptions) tlsConfig(alpn, serverName string) (*tls.Config, error) {
	configuration := &tls.Config{
		NextProtos:         []string{alpn},
		ServerName:         serverName,
		InsecureSkipVerify: options.insecure,
	}
	if options.ca != "" {
		pem, err := os.ReadFile(options.ca)
		if err != nil {
			return nil, err
		}
		configuration.RootCAs = x509.NewCertPool()
		configuration.RootCAs.AppendCertsFromPEM(pem)
	}
	return configuration, nil
}

// fetchOptions says what a client fetches.
type fetchOptions struct {
	trust               trustOptions
	out, method, ranges string
	parallel            int
	urls                []*url.URL
}

func parseFetch(name string, arguments []string) (fetchOptions, error) {
	var options fetchOptions
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	options.trust.declare(flags)
	flags.StringVar(&options.out, "out", "", "keep the bodies in this `folder`, under the last part of their path")
	flags.StringVar(&options.method, "method", "GET", "the method (HTTP/3 only)")
	flags.StringVar(&options.ranges, "range", "", "the value of a Range header (HTTP/3 only)")
	flags.IntVar(&options.parallel, "parallel", 100, "requests under way at a time")
	flags.Parse(arguments)
	for _, text := range flags.Args() {
		parsed, err := url.Parse(text)
		if err != nil {
			return options, err
		}
		options.urls = append(options.urls, parsed)
	}
	if len(options.urls) == 0 {
		return options, errors.New("at least one URL is wanted")
	}
	return options, nil
}

// connect makes one connection to the host and port of a URL. "localhost" is 127.0.0.1 and only addresses
// are taken besides it: the peers never leave the loopback.
func connect(trust *trustOptions, alpn, host, port string) (*quic.Conn, error) {
	address := host
	if host == "localhost" {
		address = "127.0.0.1"
	}
	if net.ParseIP(address) == nil {
		return nil, fmt.Errorf("%q is neither an address nor localhost", host)
	}
	configuration, err := trust.tlsConfig(alpn, host)
	if err != nil {
		return nil, err
	}
	return quic.DialAddr(context.Background(), net.JoinHostPort(address, port), configuration, quicConfig())
}

// quicConfig is quic-go's own but for windows, stream count and idle timeout.
func quicConfig() *quic.Config {
	return &quic.Config{
		InitialStreamReceiveWindow:     1 << 20,
		MaxStreamReceiveWindow:         16 << 20,
		InitialConnectionReceiveWindow: 2 << 20,
		MaxConnectionReceiveWindow:     32 << 20,
		MaxIncomingStreams:             1024,
		MaxIdleTimeout:                 60 * time.Second,
	}
}
