//! Lists of objects, as S3 writes them.

use fanfold_http_client::aws::percent_encoded;
use percent_encoding::percent_decode_str;

use crate::SourceError;
use crate::objects::Names;

/// What XML cannot have in a text.
const ENTITIES: [(&str, &str); 5] = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];

/// The path of a list of the objects that begin with a prefix, after one of them.
pub(super) fn path(prefix: &str, after: Option<&str>) -> String {
    let encoded = |text: &str| percent_encoded(text, b"");
    let after = after.map(|after| format!("&start-after={}", encoded(after))).unwrap_or_default();
    format!("/?encoding-type=url&list-type=2&prefix={}{after}", encoded(prefix))
}

/// Reads a list.
pub(super) fn read(body: &[u8]) -> Result<Names, SourceError> {
    let text = String::from_utf8_lossy(body);
    let (Some(truncated), true) = (element(&text, "IsTruncated"), text.contains("</ListBucketResult>")) else {
        return Err(SourceError::again("s3 did not answer with a list of objects"));
    };
    let encoded = element(&text, "EncodingType") == Some("url");
    let contents = text.split("<Contents>").skip(1).filter_map(|contents| contents.split("</Contents>").next());
    let names: Vec<String> = contents.filter_map(|contents| Some(name(element(contents, "Key")?, encoded))).collect();
    let more = truncated == "true";
    if more && names.is_empty() {
        return Err(SourceError::again("s3 answered that there are more objects, but with none"));
    }
    Ok(Names { names, more })
}

/// The text of the first element of this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

fn name(text: &str, encoded: bool) -> String {
    if encoded {
        return percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    }
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn list(encoding: &str, keys: &[&str], truncated: bool) -> String {
        let contents =
            |key: &&str| format!("<Contents><Key>{key}</Key><ETag>&quot;x&quot;</ETag><Size>1</Size></Contents>");
        let contents: String = keys.iter().map(contents).collect();
        format!(
            "<?xml version=\"1.0\"?>\n<ListBucketResult><Name>rows</Name>{encoding}<IsTruncated>{truncated}</IsTruncated>{contents}</ListBucketResult>"
        )
    }

    #[test]
    fn names_are_decoded_as_they_were_encoded() {
        let url = list("<EncodingType>url</EncodingType>", &["a/b+c%2B%C3%A4.csv", "z"], true);
        assert_eq!(
            read(url.as_bytes()).unwrap(),
            Names { names: vec!["a/b c+\u{e4}.csv".to_owned(), "z".to_owned()], more: true }
        );
        let plain = list("", &["a+b&amp;lt;.csv"], false);
        assert_eq!(read(plain.as_bytes()).unwrap(), Names { names: vec!["a+b&lt;.csv".to_owned()], more: false });
        assert_eq!(read(list("", &[], false).as_bytes()).unwrap(), Names::default());
        assert!(read(list("", &[], true).as_bytes()).is_err(), "the list would begin anew");
        for no_list in ["", "<html>", "<ListBucketResult><IsTruncated>false</IsTruncated>"] {
            assert!(!read(no_list.as_bytes()).unwrap_err().for_good);
        }
    }

    #[test]
    fn a_list_is_asked_for_by_prefix_and_last_name() {
        assert_eq!(path("a b/", None), "/?encoding-type=url&list-type=2&prefix=a%20b%2F");
        assert_eq!(path("", Some("a+b")), "/?encoding-type=url&list-type=2&prefix=&start-after=a%2Bb");
    }
}
