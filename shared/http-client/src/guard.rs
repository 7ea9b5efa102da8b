//! Which addresses may be called. Names are checked after they are resolved, by the resolver that the client itself uses: a check
//! before the call could be bypassed by another answer of the name server.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use fanfold::config::Surroundings;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The variable with hosts that may have private addresses, separated by commas.
pub const PRIVATE_HOSTS: &str = "BATCH_API_PRIVATE_HOSTS";

/// Hosts of this machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Allows public addresses, and the addresses of named hosts.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    hosts: Arc<[String]>,
}

/// A host may not be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has no public address, and is not a host whose private addresses may be called")]
pub struct Forbidden(String);

impl Guard {
    /// Allows public addresses, and any address of these hosts: names, addresses, or `.example.com` for all names below it.
    #[must_use]
    pub fn allowing<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Self {
        let host = |host: &str| host.trim_matches(['[', ']']).to_ascii_lowercase();
        Self { hosts: hosts.into_iter().map(str::trim).filter(|host| !host.is_empty()).map(host).collect() }
    }

    /// Allows what a deployed function may call: public addresses, and hosts that its environment names.
    #[must_use]
    pub fn deployed(surroundings: &Surroundings) -> Self {
        Self::allowing(surroundings.named(PRIVATE_HOSTS).unwrap_or_default().split(','))
    }

    /// Allows what a run on this machine may call: this machine, too. `variables` looks variables up.
    pub fn local(variables: impl Fn(&str) -> Option<String>) -> Self {
        Self::allowing(LOCAL.into_iter().chain(variables(PRIVATE_HOSTS).unwrap_or_default().split(',')))
    }

    fn names(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        self.hosts.iter().any(|named| *named == host || named.starts_with('.') && host.ends_with(named.as_str()))
    }

    /// Checks a URL whose host is an address: resolvers are not asked for these.
    ///
    /// # Errors
    /// It may not be called.
    pub(crate) fn check(&self, url: &str) -> Result<(), Forbidden> {
        let url = Url::parse(url).ok();
        let Some(host) = url.as_ref().and_then(Url::host_str) else { return Ok(()) };
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) if !is_public(address) && !self.names(host) => Err(Forbidden(host.to_owned())),
            _ => Ok(()),
        }
    }

    /// Those of these addresses of a host that may be called.
    ///
    /// # Errors
    /// None of them may.
    pub fn allowed(&self, host: &str, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Forbidden> {
        let named = self.names(host);
        let allowed: Vec<SocketAddr> =
            addresses.into_iter().filter(|address| named || is_public(address.ip())).collect();
        if allowed.is_empty() { Err(Forbidden(host.to_owned())) } else { Ok(allowed) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            let allowed = guard.allowed(host, addresses).map_err(Box::<dyn Error + Send + Sync>::from)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is reached over the public internet. Networks are those of the IANA special-purpose registries.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 198 && (b == 18 || b == 19 || b == 51 && c == 100))
        || (a == 203 && b == 0 && c == 113);
    !(reserved || address.is_private() || address.is_loopback() || address.is_link_local())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    let [a, b, c, d, e, f, g, h] = address.segments();
    let within = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // Translated addresses (RFC 6052), and those of 6to4 (RFC 3056), hold an IPv4 address.
        (0x64, 0xff9b) => [c, d, e, f] == [0; 4] && within(g, h),
        (0x2002, _) => within(b, c),
        // Of IETF protocols, for benchmarks and for documentation.
        (0x2001, 0..0x200 | 0xdb8) | (0x3fff, 0..0x1000) => false,
        // Global unicast is 2000::/3. What is outside of it is this machine, a link, a site, or a group.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for public in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.3.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.0.0.7",
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:db8::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn a_host_may_have_private_addresses_if_it_is_named() {
        let guard = Guard::allowing(["api.internal", ".corp.example", "10.0.0.7", "[fd00::1]", ""]);
        let private: Vec<SocketAddr> = vec!["10.0.0.9:0".parse().unwrap()];
        for host in ["api.internal", "API.internal.", "a.b.corp.example"] {
            assert_eq!(guard.allowed(host, private.clone()), Ok(private.clone()), "{host}");
        }
        for host in ["internal", "corp.example", "x-corp.example", "example.com", "localhost"] {
            assert_eq!(guard.allowed(host, private.clone()), Err(Forbidden(host.to_owned())), "{host}");
        }
        let both: Vec<SocketAddr> = vec!["10.0.0.9:0".parse().unwrap(), "8.8.8.8:0".parse().unwrap()];
        assert_eq!(guard.allowed("example.com", both.clone()), Ok(both[1..].to_vec()), "a name may have both");
        for (url, right) in [
            ("https://10.0.0.7:8443/x", true),
            ("https://10.0.0.8/", false),
            ("https://[fd00::1]/", true),
            ("https://[fd00::2]/", false),
            ("http://127.0.0.1:9001/2018-06-01/", false),
            // As the URL standard reads them.
            ("https://0x7f.1/", false),
            ("https://2130706433/", false),
            ("https://8.8.8.8/", true),
            ("https://example.com/", true),
        ] {
            assert_eq!(guard.check(url).is_ok(), right, "{url}");
        }
        assert!(
            Guard::local(|_| None).check("http://127.0.0.1:1/").is_ok()
                && Guard::local(|_| None).check("https://10.0.0.1/").is_err()
        );
    }
}
