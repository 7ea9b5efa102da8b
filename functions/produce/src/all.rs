//! Every kind of source that a process reaches.

use std::path::Path;
use std::sync::Arc;

use fanfold::clock::Timestamp;
use fanfold::config::Surroundings;
use fanfold::producing::{RunRows, Source};
use fanfold_http_client::aws::Aws;
use fanfold_http_client::{Guard, HttpClient};
use futures::FutureExt;
use futures::future::ready;

use crate::lambda::LambdaSource;
use crate::s3::S3Source;
use crate::url::UrlSource;
use crate::{Asking, SourceError, SourceRequest, Sources, files};

/// What only the local runner reads.
pub trait LocalSources: Send + Sync {
    /// Where files are looked for.
    fn folder(&self) -> &Path;

    /// Runs a program, with its arguments, for one question.
    fn ask_program<'a>(&'a self, command: &'a [String], ask: &'a SourceRequest) -> Asking<'a>;

    /// Reads a page of the file that is run, for runners that run one. The same question has the same rows.
    fn ask_rows<'a>(&'a self, _: &'a RunRows, _: &'a SourceRequest) -> Asking<'a> {
        ready(Err(SourceError::for_good("`producer.source.rows` can be read by `fanfold run` only"))).boxed()
    }
}

/// Asks each source in its own way.
#[allow(missing_debug_implementations)]
pub struct AllSources {
    url: UrlSource,
    lambda: LambdaSource,
    s3: S3Source,
    local: Option<Arc<dyn LocalSources>>,
}

impl AllSources {
    /// Those that Lambda functions reach: all but files and programs. URLs as far as the guard allows. With the region and
    /// credentials of the environment.
    #[must_use]
    pub fn from_environment(surroundings: &Surroundings, guard: Guard) -> Self {
        let aws = Aws::from_environment(surroundings);
        Self {
            url: UrlSource(HttpClient::guarded(guard)),
            lambda: LambdaSource(aws.clone()),
            s3: S3Source::new(aws),
            local: None,
        }
    }

    /// These, and files and programs.
    #[must_use]
    pub fn with_local(self, local: Arc<dyn LocalSources>) -> Self {
        Self { local: Some(local), ..self }
    }
}

impl Sources for AllSources {
    fn ask<'a>(&'a self, source: &'a Source, ask: &'a SourceRequest, now: Timestamp) -> Asking<'a> {
        match (source, &self.local) {
            (Source::Url(url), _) => self.url.ask(url, ask, now).boxed(),
            (Source::Lambda(function), _) => self.lambda.ask(function, ask, now).boxed(),
            (Source::S3(objects), _) => self.s3.ask(objects, ask, now).boxed(),
            (Source::File(file), Some(local)) => files::ask(local.folder(), file, ask).boxed(),
            (Source::Command(command), Some(local)) => local.ask_program(command, ask),
            (Source::Rows(rows), Some(local)) => local.ask_rows(rows, ask),
            (Source::Reissue(_), _) => {
                ready(Err(SourceError::for_good("a reissue is read from Fanfold's own tables"))).boxed()
            }
            (Source::Rows(_), None) => ready(Err(only_local("rows"))).boxed(),
            (Source::File(_), None) => ready(Err(only_local("file"))).boxed(),
            (Source::Command(_), None) => ready(Err(only_local("command"))).boxed(),
        }
    }
}

fn only_local(field: &str) -> SourceError {
    SourceError::for_good(format!("`producer.source.{field}` can be read by the local runner only"))
}
