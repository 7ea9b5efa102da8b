//! `/acks`: items named by ranges and by bitfields, and what is refused of them.

use serde_json::{Value, json};

use super::{NOBODY, Opened, Server};

/// A fan-out of two groups of 20 and of 5 items, or a small one: the names of its groups.
async fn open(server: &Server, small: bool) -> (String, Vec<String>) {
    let Opened { fanout, mut groups, .. } = server.open(json!({"items": 20, "seal": small})).await;
    if !small {
        let added = server.post(&format!("/fanouts/{fanout}/items"), json!({"items": 5})).await.ok(201);
        groups.push(added["groups"][0]["id"].as_str().unwrap().to_owned());
    }
    let names = groups.iter().map(|group| format!("{fanout}:{group}")).collect();
    (fanout, names)
}

async fn counts(server: &Server, fanout: &str) -> [u64; 4] {
    let view = server.get(&format!("/fanouts/{fanout}?progress=exact")).await.ok(200);
    ["done", "failed", "duplicates", "succeeded"].map(|name| view[name].as_u64().unwrap())
}

#[tokio::test(start_paused = true)]
async fn items_are_named_by_ids_ranges_and_masks() {
    let server = Server::start().await;
    for small in [true, false] {
        let (fanout, groups) = open(&server, small).await;
        let group = &groups[0];
        // Bits 8 and 9, and bytes that are not there.
        let body = json!({
            "items": [format!("{group}:0"), format!("{group}:2-4"), {"group": group, "mask": "AAM="}],
            "failed": [format!("{group}:4-5")],
            "duplicates": [{"group": group, "mask": "gA=="}, format!("{group}:5-5")],
        });
        for _ in 0..2 {
            assert_eq!(server.post("/acks", body.clone()).await.ok(200)["refused"], json!([]));
            assert_eq!(counts(&server, &fanout).await, [8, 2, 1, 5], "0, 2 to 5, 7 to 9; small: {small}");
        }
        let rest = server.post("/acks", json!({"items": [{"group": group, "mask": "////"}]})).await.ok(200);
        let beyond = json!([{"fanout": fanout, "group": group.split_once(':').unwrap().1, "items": ["20-23"],
            "problem": format!("item group {} of fan-out {fanout} has 20 items, there is no item 23", group.split_once(':').unwrap().1)}]);
        assert_eq!(rest["refused"], beyond);
        assert_eq!(counts(&server, &fanout).await, [20, 2, 1, 17], "the first outcome counts");
        assert_eq!(rest["fanouts"][0]["complete"], small);
    }
}

#[tokio::test(start_paused = true)]
async fn exactly_what_was_refused_is_named() {
    let server = Server::start().await;
    let (fanout, groups) = open(&server, false).await;
    let body = json!({
        "items": [format!("{}:3-6", groups[1]), format!("{fanout}:{NOBODY}:7-9"), format!("{fanout}:{NOBODY}:5")],
        "failed": [{"group": format!("{fanout}:{NOBODY}"), "mask": "AQ=="}, format!("{}:9", groups[1])],
    });
    let answer = server.post("/acks", body.clone()).await.ok(200);
    let refused: Vec<(&Value, &Value)> =
        answer["refused"].as_array().unwrap().iter().map(|refused| (&refused["group"], &refused["items"])).collect();
    let second = json!(groups[1].split_once(':').unwrap().1);
    assert_eq!(refused.len(), 2);
    assert!(refused.contains(&(&second, &json!(["5-6", "9"]))), "{refused:?}");
    assert!(refused.contains(&(&json!(NOBODY), &json!(["0", "5", "7-9"]))), "{refused:?}");
    assert_eq!(counts(&server, &fanout).await, [2, 0, 0, 2], "what is there was applied");
    assert_eq!(server.post("/acks", body).await.ok(200), answer, "a repetition is answered alike");
}

#[tokio::test(start_paused = true)]
async fn if_all_is_refused_the_answer_is_a_problem() {
    let server = Server::start().await;
    let (fanout, groups) = open(&server, false).await;
    for (body, field) in [
        (json!({"items": [format!("{}:5-9", groups[1])]}), "items[0]"),
        (json!({"failed": [{"group": groups[1], "mask": "IA=="}]}), "failed[0]"),
        (json!({"items": [{"group": groups[1], "mask": ""}, format!("{fanout}:{NOBODY}:0-7167")]}), "items[1]"),
    ] {
        assert_eq!(server.post("/acks", body).await.problem(422, "invalid_acks").1, [field]);
    }
    let nothing = json!({"items": [{"group": format!("{fanout}:{NOBODY}"), "mask": "AAA="}]});
    assert_eq!(server.post("/acks", nothing).await.ok(200), json!({"fanouts": [], "refused": []}));
    assert_eq!(counts(&server, &fanout).await, [0; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_shape_that_is_none_is_named_and_nothing_is_applied() {
    let server = Server::start().await;
    let (fanout, groups) = open(&server, false).await;
    let group = &groups[0];
    let too_long = "A".repeat(1_200);
    for (entry, field, named) in [
        (json!(format!("{group}:9-5")), "items[1]", ":9-5`"),
        (json!(format!("{group}:5-7168")), "items[1]", "below 7168"),
        (json!(format!("{group}:05-7")), "items[1]", ":05-7`"),
        (json!({"group": group, "mask": "AQ"}), "items[1].mask", "`AQ` is not base64"),
        (json!({"group": group, "mask": too_long}), "items[1].mask", "at most 896"),
        (json!({"group": group}), "items[1].mask", "missing"),
        (json!({"group": NOBODY, "mask": ""}), "items[1].group", "<fanout>:<group>"),
        (json!({"group": group, "mask": "", "bits": 3}), "items[1].bits", "unknown field"),
        (json!(7), "items[1]", "an item id, a range of items, or an object"),
    ] {
        let reply = server.post("/acks", json!({"items": [format!("{group}:0"), entry]})).await;
        let (detail, fields) = reply.problem(422, "invalid_body");
        assert_eq!(fields, [field], "{detail}");
        assert!(detail.contains(named), "{detail}");
    }
    assert_eq!(counts(&server, &fanout).await, [0; 4]);
}

/// The answer must not outgrow what Lambda takes, which would be seen only after all was applied.
#[tokio::test(start_paused = true)]
async fn an_answer_has_a_limit() {
    let server = Server::start().await;
    let (fanout, groups) = open(&server, false).await;
    let id = |n: usize| format!("{fanout}:01890000-0000-7000-8000-{n:012}:0");
    let ids = |count: usize| (0..count).map(id).collect::<Vec<_>>();
    let own = format!("{}:0", groups[0]);
    let (detail, fields) =
        server.post("/acks", json!({"items": [own, own], "failed": ids(3_500)})).await.problem(422, "invalid_body");
    assert_eq!(fields, ["failed[3499]"]);
    assert!(detail.contains("3500 are allowed"), "{detail}");
    assert_eq!(counts(&server, &fanout).await, [0; 4], "nothing was applied");
    let answer = server.post("/acks", json!({"items": [own], "failed": ids(3_499)})).await.ok(200);
    assert_eq!(answer["refused"].as_array().unwrap().len(), 3_499);
    // Every other item of 7,168.
    let mask = json!({"group": format!("{fanout}:{NOBODY}"), "mask": format!("{}VVU=", "VVVV".repeat(298))});
    let answer = server.post("/acks", json!({"items": [own, mask]})).await.ok(200);
    let refused = &answer["refused"][0];
    assert_eq!((refused["items"].as_array().unwrap().len(), &refused["more"]), (100, &json!(3_484)));
}
