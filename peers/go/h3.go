package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func h3Server(arguments []string) error {
	options := parseServe("h3-server", arguments)
	certificate, err := tls.LoadX509KeyPair(options.cert, options.key)
	if err != nil {
		return err
	}
	socket, err := listenUDP(options.listen)
	if err != nil {
		return err
	}
	configuration := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}})
	settings := quicConfig()
	settings.Allow0RTT = true
	transport := quic.Transport{Conn: socket}
	listener, err := transport.ListenEarly(configuration, settings)
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	server := http3.Server{Handler: http.FileServer(http.Dir(options.root))}
	return server.ServeListener(listener)
}

func h3Client(arguments []string) error {
	options, err := parseFetch("h3-client", arguments)
	if err != nil {
		return err
	}
	first := options.urls[0]
	connections := 0
	transport := &http3.Transport{
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{},
		Dial: func(_ context.Context, _ string, _ *tls.Config, _ *quic.Config) (*quic.Conn, error) {
			connections++
			return connect(&options.trust, http3.NextProtoH3, first.Hostname(), first.Port())
		},
	}
	defer transport.Close()
	err = fetchAll(options, func(url *url.URL) (answer, error) {
		request, err := http.NewRequest(options.method, url.String(), nil)
		if err != nil {
			return answer{}, err
		}
		if options.ranges != "" {
			request.Header.Set("Range", options.ranges)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return answer{}, err
		}
		declared := "-"
		if response.ContentLength >= 0 {
			declared = strconv.FormatInt(response.ContentLength, 10)
		}
		return answer{strconv.Itoa(response.StatusCode), declared, io.Reader(response.Body)}, nil
	})
	if err == nil && connections != 1 {
		err = fmt.Errorf("%d connections were made, not one", connections)
	}
	return err
}
