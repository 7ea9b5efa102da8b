//! Every kind of source that a process reaches.

use fanfold::clock::Timestamp;
use fanfold::config::Surroundings;
use fanfold::producing::Source;
use fanfold_http_client::aws::Aws;
use futures::FutureExt;

use crate::http::HttpSource;
use crate::lambda::LambdaSource;
use crate::s3::S3Source;
use crate::{Ask, Asking, Sources};

/// Asks each source in its own way.
#[derive(Debug)]
pub struct AllSources {
    http: HttpSource,
    lambda: LambdaSource,
    s3: S3Source,
}

impl AllSources {
    /// With the region and credentials of the environment.
    #[must_use]
    pub fn from_environment(surroundings: &Surroundings) -> Self {
        let aws = Aws::from_environment(surroundings);
        Self { http: HttpSource::default(), lambda: LambdaSource(aws.clone()), s3: S3Source::new(aws) }
    }
}

impl Sources for AllSources {
    fn ask<'a>(&'a self, source: &'a Source, ask: &'a Ask, now: Timestamp) -> Asking<'a> {
        match source {
            Source::Url(url) => self.http.ask(url, ask, now).boxed(),
            Source::Lambda(function) => self.lambda.ask(function, ask, now).boxed(),
            Source::S3(objects) => self.s3.ask(objects, ask, now).boxed(),
        }
    }
}
