package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// The "perf" protocol: a stream starts with eight bytes, big-endian, that say how many bytes the server is to
// answer; whatever follows them is upload.
const perfALPN = "perf"

var zeros = make([]byte, 64<<10)

func perfServer(arguments []string) error {
	options := parseServe("perf-server", arguments)
	if options.cipher != "aes128" {
		return errors.New("Go does not let one choose among the ciphers of TLS 1.3")
	}
	configuration, err := options.tlsConfig(perfALPN)
	if err != nil {
		return err
	}
	configuration.SessionTicketsDisabled = true
	configuration.CurvePreferences = []tls.CurveID{tls.X25519}
	address, err := net.ResolveUDPAddr("udp", options.listen)
	if err != nil {
		return err
	}
	transport, err := perfTransport(address)
	if err != nil {
		return err
	}
	listener, err := transport.Listen(configuration, quicConfig())
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	return answerStreams(listener, perfAnswer)
}

// perfTransport has the buffers that everybody is measured with.
func perfTransport(address *net.UDPAddr) (*quic.Transport, error) {
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return nil, err
	}
	const buffer = 4 << 20
	if err := errors.Join(socket.SetReadBuffer(buffer), socket.SetWriteBuffer(buffer)); err != nil {
		return nil, err
	}
	return &quic.Transport{Conn: socket}, nil
}

func perfAnswer(stream *quic.Stream) {
	var head [8]byte
	if _, err := io.ReadFull(stream, head[:]); err != nil {
		return
	}
	if _, err := io.CopyBuffer(io.Discard, stream, make([]byte, len(zeros))); err != nil {
		return
	}
	for left := binary.BigEndian.Uint64(head[:]); left > 0; {
		written, err := stream.Write(zeros[:min(left, uint64(len(zeros)))])
		if err != nil {
			return
		}
		left -= uint64(written)
	}
	stream.Close()
}

type perfOptions struct {
	trust                      trustOptions
	download, upload, duration float64
	rps, hps, json             bool
	request, streams, idle     int
	response                   uint64
}

// perfTarget makes connections to a server.
type perfTarget struct {
	transport *quic.Transport
	address   *net.UDPAddr
	tls       *tls.Config
}

func (target *perfTarget) connect() (*quic.Conn, error) {
	return target.transport.Dial(context.Background(), target.address, target.tls, quicConfig())
}

func perfClient(arguments []string) error {
	var options perfOptions
	flags := flag.NewFlagSet("perf-client", flag.ExitOnError)
	options.trust.declare(flags)
	flags.Float64Var(&options.download, "download", 0, "receive for so many `seconds`")
	flags.Float64Var(&options.upload, "upload", 0, "send for so many `seconds`")
	flags.BoolVar(&options.rps, "rps", false, "requests per second")
	flags.BoolVar(&options.hps, "hps", false, "handshakes per second")
	flags.IntVar(&options.idle, "idle", 0, "open so many `connections`, and keep them until the standard input ends")
	flags.IntVar(&options.request, "request", 512, "`bytes` of a request after its first eight")
	flags.Uint64Var(&options.response, "response", 8192, "`bytes` of a response")
	flags.IntVar(&options.streams, "streams", 1, "requests, or handshakes, under way at a time")
	flags.Float64Var(&options.duration, "duration", 2, "how long --rps and --hps run, `seconds`")
	flags.BoolVar(&options.json, "json", false, "as others have it; there is nothing else")
	if len(arguments) == 0 {
		return errors.New("the address of the server is wanted")
	}
	flags.Parse(arguments[1:])
	address, err := net.ResolveUDPAddr("udp", arguments[0])
	if err != nil {
		return err
	}
	configuration, err := options.trust.tlsConfig(perfALPN, "localhost")
	if err != nil {
		return err
	}
	configuration.CurvePreferences = []tls.CurveID{tls.X25519}
	transport, err := perfTransport(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	// Closing it waits for nobody: what ends the connections has been sent by then.
	defer transport.Close()
	result, err := perfMeasure(options, &perfTarget{transport, address, configuration})
	if err != nil || result == nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func perfMeasure(options perfOptions, target *perfTarget) (map[string]any, error) {
	switch {
	case options.hps:
		return perfHandshakes(options, target)
	case options.idle > 0:
		return nil, perfIdle(options.idle, target)
	}
	connection, err := target.connect()
	if err != nil {
		return nil, err
	}
	defer connection.CloseWithError(0, "")
	switch {
	case options.download > 0:
		return perfDownload(connection, seconds(options.download))
	case options.upload > 0:
		return perfUpload(connection, seconds(options.upload))
	case options.rps:
		return perfRequests(options, connection)
	}
	return nil, errors.New("one of --download, --upload, --rps, --hps and --idle is wanted")
}

func perfIdle(wanted int, target *perfTarget) error {
	connections := make([]*quic.Conn, wanted)
	for index := range connections {
		connection, err := target.connect()
		if err != nil {
			return err
		}
		connections[index] = connection
	}
	fmt.Println("open", wanted)
	_, err := io.Copy(io.Discard, os.Stdin)
	for _, connection := range connections {
		err = errors.Join(err, connection.Context().Err())
		connection.CloseWithError(0, "")
	}
	return err
}

func perfDownload(connection *quic.Conn, duration time.Duration) (map[string]any, error) {
	start, size := time.Now(), 0
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return nil, err
	}
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, ^uint64(0))); err != nil {
		return nil, err
	}
	stream.Close()
	buffer := make([]byte, len(zeros))
	for time.Since(start) < duration {
		read, err := stream.Read(buffer)
		if err != nil {
			return nil, err
		}
		size += read
	}
	stream.CancelRead(0)
	return throughput("download", size, time.Since(start)), nil
}

// perfUpload measures up to the server's word that it has everything.
func perfUpload(connection *quic.Conn, duration time.Duration) (map[string]any, error) {
	start, size := time.Now(), 0
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return nil, err
	}
	if _, err := stream.Write(make([]byte, 8)); err != nil {
		return nil, err
	}
	for time.Since(start) < duration {
		written, err := stream.Write(zeros)
		if err != nil {
			return nil, err
		}
		size += written
	}
	stream.Close()
	if _, err := io.ReadAll(stream); err != nil {
		return nil, err
	}
	return throughput("upload", size, time.Since(start)), nil
}

func perfRequests(options perfOptions, connection *quic.Conn) (map[string]any, error) {
	message := append(binary.BigEndian.AppendUint64(nil, options.response), make([]byte, options.request)...)
	return perfRepeat("rps", "requests", options, func() error {
		return perfRequest(connection, message, options.response)
	})
}

func perfHandshakes(options perfOptions, target *perfTarget) (map[string]any, error) {
	return perfRepeat("hps", "handshakes", options, func() error {
		connection, err := target.connect()
		if err != nil {
			return err
		}
		// What it takes to close it is not the handshake's, but keeps it from beginning another.
		return connection.CloseWithError(0, "")
	})
}

// perfRepeat does something again and again, in several places at the same time.
func perfRepeat(test, noun string, options perfOptions, act func() error) (map[string]any, error) {
	start := time.Now()
	until := start.Add(seconds(options.duration))
	latencies := make([][]time.Duration, options.streams)
	failures := make([]error, options.streams)
	var group sync.WaitGroup
	for worker := range options.streams {
		group.Go(func() {
			for failures[worker] == nil && time.Now().Before(until) {
				start := time.Now()
				failures[worker] = act()
				latencies[worker] = append(latencies[worker], time.Since(start))
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	took, all := time.Since(start).Seconds(), slices.Concat(latencies...)
	slices.Sort(all)
	at := func(quantile float64) float64 {
		return float64(all[int(quantile*float64(len(all)-1))].Nanoseconds()) / 1e3
	}
	return map[string]any{
		"test": test, noun: len(all), "seconds": took, noun + "_per_second": float64(len(all)) / took,
		"latency_us": map[string]float64{
			"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p99_9": at(0.999), "p99_99": at(0.9999), "max": at(1),
		},
	}, nil
}

func perfRequest(connection *quic.Conn, message []byte, response uint64) error {
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write(message); err != nil {
		return err
	}
	stream.Close()
	size, err := io.Copy(io.Discard, stream)
	if err == nil && uint64(size) != response {
		err = fmt.Errorf("%d bytes came, %d were asked for", size, response)
	}
	return err
}

func throughput(test string, size int, took time.Duration) map[string]any {
	rate := float64(size) * 8 / took.Seconds()
	return map[string]any{"test": test, "bytes": size, "seconds": took.Seconds(), "bits_per_second": rate}
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}
