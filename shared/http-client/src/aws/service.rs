//! The services that are called without an SDK.

use aws_sigv4::http_request::{PayloadChecksumKind, PercentEncodingMode, SigningSettings, UriPathNormalizationMode};

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Amazon EventBridge.
    EventBridge,
    /// AWS Lambda.
    Lambda,
    /// Amazon S3.
    S3,
    /// AWS Secrets Manager.
    SecretsManager,
    /// Amazon SQS.
    Sqs,
    /// The parameter store of AWS Systems Manager.
    Ssm,
    /// AWS Step Functions.
    StepFunctions,
}

impl Service {
    pub(super) const ALL: [Self; 7] =
        [Self::EventBridge, Self::Lambda, Self::S3, Self::SecretsManager, Self::Sqs, Self::Ssm, Self::StepFunctions];

    /// What it signs by, and what its endpoint begins with.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EventBridge => "events",
            Self::Lambda => "lambda",
            Self::S3 => "s3",
            Self::SecretsManager => "secretsmanager",
            Self::Sqs => "sqs",
            Self::Ssm => "ssm",
            Self::StepFunctions => "states",
        }
    }

    /// The variable with an endpoint in place of AWS's, as SDKs know it.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::EventBridge => "AWS_ENDPOINT_URL_EVENTBRIDGE",
            Self::Lambda => "AWS_ENDPOINT_URL_LAMBDA",
            Self::S3 => "AWS_ENDPOINT_URL_S3",
            Self::SecretsManager => "AWS_ENDPOINT_URL_SECRETS_MANAGER",
            Self::Sqs => "AWS_ENDPOINT_URL_SQS",
            Self::Ssm => "AWS_ENDPOINT_URL_SSM",
            Self::StepFunctions => "AWS_ENDPOINT_URL_SFN",
        }
    }

    /// How it wants to be signed. S3 takes paths as they are sent, and a hash of the body.
    pub(super) fn settings(self) -> SigningSettings {
        let mut settings = SigningSettings::default();
        if self == Self::S3 {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        settings
    }
}
