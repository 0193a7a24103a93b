// What Go's net/http gets from a server, as JSON. Usage: go_client 1|2 URL CERTIFICATE MB
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func text(answer *http.Response, err error) string {
	check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	check(err)
	return string(body)
}

func main() {
	version, url := os.Args[1], os.Args[2]
	certificate, err := os.ReadFile(os.Args[3])
	check(err)
	megabytes, err := strconv.ParseInt(os.Args[4], 10, 64)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:  version == "2",
		DisableCompression: true,
	}
	client := &http.Client{Transport: transport}
	told := map[string]any{}

	answer, err := client.Get(url + "/page")
	check(err)
	told["version"] = answer.Proto
	told["page"] = text(answer, nil)
	told["post"] = text(client.Post(url+"/echo", "text/plain", strings.NewReader("said")))

	answer, err = client.Get(url + "/large")
	check(err)
	told["download"], err = io.Copy(io.Discard, answer.Body)
	check(err)
	answer.Body.Close()

	request, err := http.NewRequest("POST", url+"/upload", io.LimitReader(zeros{}, megabytes<<20))
	check(err)
	request.ContentLength = megabytes << 20
	told["upload"], err = strconv.Atoi(text(client.Do(request)))
	check(err)

	var all sync.WaitGroup
	var good atomic.Int64
	for number := 0; number < 200; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			if text(client.Get(fmt.Sprintf("%s/page?%d", url, number))) == "page" {
				good.Add(1)
			}
		}(number)
	}
	all.Wait()
	told["parallel"] = good.Load()

	for count := 0; count < 20; count++ {
		context, cancel := context.WithCancel(context.Background())
		request, err := http.NewRequestWithContext(context, "GET", url+"/large", nil)
		check(err)
		answer, err := client.Do(request)
		check(err)
		_, err = io.ReadFull(answer.Body, make([]byte, 1<<14))
		check(err)
		cancel()
		answer.Body.Close()
	}
	told["after_cancelling"] = text(client.Get(url + "/page"))

	answer, err = client.Get(url + "/trailers")
	check(err)
	text(answer, nil)
	told["trailer"] = answer.Trailer.Get("X-Sum")
	check(json.NewEncoder(os.Stdout).Encode(told))
}
