// Command peer is grpc-go as a peer to test against: its own service and cases of gRPC's interoperation tests.
//
//	peer server --listen ADDR:PORT --cert PEM --key PEM
//	peer client --ca PEM --url https://HOST:PORT CASE...
//
// The client prints "ok CASE" for each case that ends well; the first that does not ends the program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// testCase is one of the interoperation tests.
type testCase func(ctx context.Context, connection *grpc.ClientConn, calls pb.TestServiceClient)

// of makes a case of a function of grpc-go's.
func of(run func(context.Context, pb.TestServiceClient, ...grpc.CallOption)) testCase {
	return func(ctx context.Context, _ *grpc.ClientConn, calls pb.TestServiceClient) { run(ctx, calls) }
}

var cases = map[string]testCase{
	"empty_unary":                 of(interop.DoEmptyUnaryCall),
	"large_unary":                 of(interop.DoLargeUnaryCall),
	"client_streaming":            of(interop.DoClientStreaming),
	"server_streaming":            of(interop.DoServerStreaming),
	"ping_pong":                   of(interop.DoPingPong),
	"empty_stream":                of(interop.DoEmptyStream),
	"cancel_after_begin":          of(interop.DoCancelAfterBegin),
	"cancel_after_first_response": of(interop.DoCancelAfterFirstResponse),
	"timeout_on_sleeping_server":  of(interop.DoTimeoutOnSleepingServer),
	"custom_metadata":             of(interop.DoCustomMetadata),
	"status_code_and_message":     of(interop.DoStatusCodeAndMessage),
	"special_status_message":      of(interop.DoSpecialStatusMessage),
	"unimplemented_method": func(ctx context.Context, connection *grpc.ClientConn, _ pb.TestServiceClient) {
		interop.DoUnimplementedMethod(ctx, connection)
	},
	"unimplemented_service": func(ctx context.Context, connection *grpc.ClientConn, _ pb.TestServiceClient) {
		interop.DoUnimplementedService(ctx, pb.NewUnimplementedServiceClient(connection))
	},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) > 0 && arguments[0] == "server" {
		return serve(arguments[1:])
	}
	if len(arguments) > 0 && arguments[0] == "client" {
		return ask(arguments[1:])
	}
	return errors.New("the first argument is one of server client")
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "the `address` to listen on")
	cert := flags.String("cert", "", "the certificate chain, PEM `file`")
	key := flags.String("key", "", "the private key, PEM `file`")
	flags.Parse(arguments)
	identity, err := credentials.NewServerTLSFromFile(*cert, *key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.Creds(identity))
	pb.RegisterTestServiceServer(server, interop.NewTestServer())
	fmt.Println("listening", listener.Addr())
	return server.Serve(listener)
}

func ask(arguments []string) error {
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	ca := flags.String("ca", "", "the certificate authority to trust, PEM `file`")
	address := flags.String("url", "", "the server's `URL`")
	flags.Parse(arguments)
	target, err := url.Parse(*address)
	if err != nil {
		return err
	}
	trust, err := credentials.NewClientTLSFromFile(*ca, target.Hostname())
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("passthrough:///"+target.Host, grpc.WithTransportCredentials(trust))
	if err != nil {
		return err
	}
	defer connection.Close()
	calls := pb.NewTestServiceClient(connection)
	for _, name := range flags.Args() {
		run, known := cases[name]
		if !known {
			return fmt.Errorf("there is no case %q", name)
		}
		run(context.Background(), connection, calls)
		fmt.Println("ok", name)
	}
	return nil
}
