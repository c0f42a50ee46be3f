# Varnish in front of Sirius on one machine. If a proxy in front of it ends TLS, keep the two fields that it sets.
# sirius --listen 127.0.0.1:5000 --trust-proxy 127.0.0.1 app.psgi

vcl 4.1;

backend shop {
    .host = "127.0.0.1";
    .port = "5000";
}

sub vcl_recv {
    # Otherwise a client could name fields there that Varnish then removes, those that are set here included
    unset req.http.Connection;

    set req.http.X-Forwarded-For = client.ip;
    set req.http.X-Forwarded-Proto = "http";

    # What only a proxy may say, and this one does not
    unset req.http.Early-Data;
    unset req.http.X-Request-Id;
    unset req.http.X-Request-Start;
    unset req.http.Forwarded;
    unset req.http.Via;
    unset req.http.Front-End-Https;
    unset req.http.X-Forwarded-Host;
    unset req.http.X-Forwarded-Port;
    unset req.http.X-Forwarded-Prefix;
    unset req.http.X-Forwarded-Protocol;
    unset req.http.X-Forwarded-Scheme;
    unset req.http.X-Forwarded-Script-Name;
    unset req.http.X-Forwarded-Server;
    unset req.http.X-Forwarded-Ssl;
    unset req.http.X-Forwarded-User;
    unset req.http.X-Original-Host;
    unset req.http.X-Original-URL;
    unset req.http.X-Queue-Start;
    unset req.http.X-Real-IP;
    unset req.http.X-Remote-User;
    unset req.http.Remote-User;
    unset req.http.X-Rewrite-URL;
    unset req.http.X-Scheme;
    unset req.http.X-Script-Name;
    unset req.http.X-URL-Scheme;
    unset req.http.Client-Cert;
    unset req.http.Client-Cert-Chain;
    unset req.http.SSL-Client-Cert;
    unset req.http.SSL-Client-S-DN;
    unset req.http.SSL-Client-Verify;
    unset req.http.X-Client-Cert;
    unset req.http.X-Client-DN;
    unset req.http.X-Client-Verify;
    unset req.http.X-Forwarded-Client-Cert;
    unset req.http.X-SSL-Client-Cert;
    unset req.http.X-SSL-Client-S-DN;
    unset req.http.X-SSL-Client-Verify;
}
