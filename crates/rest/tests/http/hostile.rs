//! What a stranger may send without harm to anybody else.

use crate::place::Place;

/// It overflowed the stack, and with it the whole server.
#[tokio::test]
async fn a_query_of_thousands_of_factors_is_answered() {
    let place = Place::new().await;
    for query in [
        format!("RETURN%201{}%20AS%20x", "*1".repeat(6_000)),
        format!("RETURN%20{}true%20AS%20x", "NOT%20".repeat(6_000)),
        format!(
            "WITH%201%20AS%20a%20RETURN%20a{}%20AS%20x",
            ".b".repeat(6_000)
        ),
    ] {
        let path = format!("/tools/code_query?cypher={query}");
        let answer = place.get(&path, "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let doubling = format!(
        "WITH%20'x'%20AS%20a{}%20RETURN%20a",
        "%20WITH%20a%2Ba%20AS%20a".repeat(60)
    );
    let answer = place
        .get(&format!("/tools/code_query?cypher={doubling}"), "")
        .await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.json().to_string().contains("32 MiB"), "{answer:?}");
}

#[tokio::test]
async fn a_body_from_a_page_is_json_only_if_it_says_so() {
    let place = Place::new().await;
    let body = r#"{"cypher": "RETURN 1 AS x"}"#;
    let ask = async |headers: &str| {
        let n_bytes = body.len();
        let request = format!(
            "POST /code/query HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {n_bytes}\r\n\r\n{body}"
        );
        place.ask(request).await.status
    };
    assert_eq!(ask("").await, 200, "a program that says nothing");
    let json = "Content-Type: application/json\r\n";
    for page in [
        "Origin: http://localhost\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
    ] {
        assert_eq!(ask(page).await, 422, "{page}");
        assert_eq!(
            ask(&format!("{page}Content-Type: text/plain\r\n")).await,
            422
        );
        assert_eq!(ask(&format!("{page}{json}")).await, 200, "{page}");
    }
}
