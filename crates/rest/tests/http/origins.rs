//! Pages of other origins: those that the operator named may call.

use crate::place::{Place, Setup, get};
use kenning_engine::Scope;

#[tokio::test]
async fn pages_of_named_origins_may_call_and_no_others() {
    let place = Place::with(Setup {
        require_token: true,
        allow_origins: vec!["https://app.example", "http://10.1.2.3:3000"],
        ..Setup::default()
    })
    .await;
    let token = place.token(&[Scope::Read], "default", None);
    let asks = |origin: &str| {
        format!(
            "OPTIONS /search HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: content-type, authorization\r\n\r\n"
        )
    };
    for origin in ["https://app.example", "http://10.1.2.3:3000"] {
        let answer = place.ask(asks(origin)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        let methods = answer.header("access-control-allow-methods").unwrap();
        let headers = answer.header("access-control-allow-headers").unwrap();
        assert!(methods.contains("POST") && headers.contains("authorization"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        let with = format!("Origin: {origin}\r\nAuthorization: Bearer {token}\r\n");
        let answer = place.get("/stats", &with).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        assert_eq!(answer.header("vary"), Some("Origin"));
        // A page that may call is told why it is refused, too.
        let answer = place.get("/stats", &format!("Origin: {origin}\r\n")).await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
    }
    for origin in [
        "https://evil.example",
        "http://app.example",
        "https://app.example:444",
        "https://app.example.evil",
        "null",
    ] {
        let answer = place.ask(asks(origin)).await;
        assert_eq!(answer.status, 403, "{origin}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
        let with = format!("Origin: {origin}\r\nAuthorization: Bearer {token}\r\n");
        assert_eq!(place.get("/stats", &with).await.status, 403, "{origin}");
    }
    let strange = asks("https://app.example").replace("Host: localhost", "Host: evil.example");
    assert_eq!(place.ask(strange).await.status, 403);
    let plain = place
        .ask(get("/stats", &format!("Authorization: Bearer {token}\r\n")))
        .await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
}

/// A proxy that speaks TLS passes on the name that was called; its pages have an origin of https.
#[tokio::test]
async fn behind_a_proxy_with_tls_the_operator_names_the_origin() {
    for (named, expected) in [(vec!["https://kenning.example"], 200), (vec![], 403)] {
        let place = Place::with(Setup {
            allow_hosts: vec!["kenning.example".to_owned()],
            allow_origins: named,
            ..Setup::default()
        })
        .await;
        let request = "GET /stats HTTP/1.1\r\nHost: kenning.example\r\nOrigin: https://kenning.example\r\n\r\n";
        assert_eq!(place.ask(request).await.status, expected);
    }
}
