//! Fetching what a question has attached: images, for the agents that see. The other outbound door beside `llm::http`.
//!
//! Only https, only hosts on the allowlist, only public addresses (looked at after resolution, and the very addresses
//! that were looked at are connected to), no redirects, bounded in size and time. `data:` URLs need no door.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

use crate::domain::Attachment;
use crate::llm::Image;

/// Fetches attachments within its bounds.
pub struct Fetcher {
    /// `None` on a machine without root certificates: then nothing can be fetched.
    client: Option<reqwest::Client>,
    hosts: BTreeSet<String>,
    most_bytes: usize,
}

/// What a fetch may do.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Lower-case host names.
    pub hosts: BTreeSet<String>,
    pub most_bytes: usize,
    pub timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("only https addresses are fetched")]
    Scheme,
    #[error("host {0:?} is not on the list of allowed hosts")]
    Host(String),
    #[error("it could not be fetched")]
    Unreachable,
    #[error("the host answered {0}")]
    Status(u16),
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    #[error("it is not a readable image")]
    NotAnImage,
}

impl Fetcher {
    #[allow(clippy::disallowed_methods, reason = "one of the two outbound doors")]
    pub fn new(bounds: Bounds) -> Self {
        // Fails only when a provider is installed already, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .https_only(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(bounds.timeout)
            .dns_resolver(Arc::new(PublicOnly))
            .build()
            .inspect_err(|error| tracing::warn!(%error, "attachments cannot be fetched"))
            .ok();
        Self { client, hosts: bounds.hosts, most_bytes: bounds.most_bytes }
    }

    /// The images among the attachments, and one sentence for each that could not be had.
    pub async fn images(&self, attachments: &[Attachment]) -> (Vec<Image>, Vec<String>) {
        let wanted = attachments.iter().filter_map(|a| a.image_type().map(|media_type| (a, media_type)));
        let fetched = wanted.map(|(a, media_type)| async move { (a, self.image(a, media_type).await) });
        let mut images = vec![];
        let mut unseen = vec![];
        for (attachment, result) in futures_util::future::join_all(fetched).await {
            match result {
                Ok(image) => images.push(image),
                Err(error) => unseen.push(format!("the image {:?} was not seen: {error}", attachment.filename)),
            }
        }
        (images, unseen)
    }

    async fn image(&self, attachment: &Attachment, media_type: &'static str) -> Result<Image, Error> {
        let bytes = match attachment.url.strip_prefix("data:") {
            Some(data) => {
                let (_, encoded) = data.split_once(";base64,").ok_or(Error::NotAnImage)?;
                STANDARD.decode(encoded).map_err(|_| Error::NotAnImage)?
            }
            None => self.fetch(&attachment.url).await?,
        };
        if bytes.len() > self.most_bytes {
            return Err(Error::TooLarge(self.most_bytes));
        }
        // What the bytes say counts, not what the client claims.
        let found = sniff(&bytes).ok_or(Error::NotAnImage)?;
        if found != media_type {
            tracing::debug!(declared = media_type, found, "an attachment's type was corrected");
        }
        Ok(Image { media_type: found.to_owned(), base64: STANDARD.encode(&bytes) })
    }

    async fn fetch(&self, url: &str) -> Result<Vec<u8>, Error> {
        let url = Url::parse(url).map_err(|_| Error::Scheme)?;
        if url.scheme() != "https" {
            return Err(Error::Scheme);
        }
        let host = url.host_str().unwrap_or("").to_lowercase();
        if !self.hosts.contains(&host) {
            return Err(Error::Host(host));
        }
        if let Some(address) = literal_address(&url)
            && !is_public(address)
        {
            return Err(Error::Unreachable);
        }
        let client = self.client.as_ref().ok_or(Error::Unreachable)?;
        let response = client.get(url).send().await.map_err(|_| Error::Unreachable)?;
        if !response.status().is_success() {
            return Err(Error::Status(response.status().as_u16()));
        }
        let mut bytes = vec![];
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk.map_err(|_| Error::Unreachable)?);
            if bytes.len() > self.most_bytes {
                return Err(Error::TooLarge(self.most_bytes));
            }
        }
        Ok(bytes)
    }
}

/// Resolves names to public addresses only.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err("the name has no public address".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        url::Host::Ipv4(address) => Some(IpAddr::V4(address)),
        url::Host::Ipv6(address) => Some(IpAddr::V6(address)),
        url::Host::Domain(_) => None,
    }
}

/// Whether an address is one of the public Internet's.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let benchmark = a == 198 && (b == 18 || b == 19);
            let protocol = a == 192 && b == 0 && c == 0;
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_unspecified()
                || v4.is_multicast()
                || a == 0
                || a >= 240
                || shared
                || benchmark
                || protocol)
        }
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4() {
                return is_public(IpAddr::V4(v4));
            }
            let [first, second, ..] = v6.segments();
            let translated = first == 0x64 && second == 0xff9b;
            let documentation = first == 0x2001 && second == 0xdb8;
            let six_to_four = first == 0x2002;
            (first & 0xe000) == 0x2000 && !translated && !documentation && !six_to_four
        }
    }
}

fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetcher() -> Fetcher {
        let hosts = ["cdn.example".to_owned(), "127.0.0.1".to_owned(), "localhost".to_owned()].into();
        Fetcher::new(Bounds { hosts, most_bytes: 1000, timeout: Duration::from_secs(2) })
    }

    fn attachment(url: &str) -> Attachment {
        Attachment { filename: "a.png".into(), url: url.into(), content_type: None }
    }

    async fn unseen(url: &str) -> String {
        fetcher().images(&[attachment(url)]).await.1.join("")
    }

    #[tokio::test]
    async fn only_https_from_listed_hosts_with_public_addresses_is_fetched() {
        assert!(unseen("http://cdn.example/a.png").await.contains("only https"));
        assert!(unseen("https://evil.example/a.png").await.contains("not on the list"));
        assert!(unseen("https://127.0.0.1/a.png").await.contains("could not be fetched"));
        assert!(unseen("https://localhost/a.png").await.contains("could not be fetched"));
        assert!(unseen("file:///etc/passwd").await.contains("only https"));
    }

    #[test]
    fn addresses_of_the_house_are_not_public() {
        let no = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "::1", "fe80::1", "fd00::1"];
        assert!(no.iter().all(|a| !is_public(a.parse().unwrap())));
        assert!(!is_public("::ffff:10.0.0.1".parse().unwrap()));
        assert!(is_public("1.1.1.1".parse().unwrap()) && is_public("2606:4700::1111".parse().unwrap()));
    }

    #[tokio::test]
    async fn a_data_url_is_read_and_its_bytes_are_looked_at() {
        let png = format!("data:image/png;base64,{}", STANDARD.encode([0x89, b'P', b'N', b'G', 1, 2]));
        let (images, unseen) = fetcher().images(&[attachment(&png)]).await;
        assert_eq!((images.len(), unseen.len()), (1, 0));
        let text = format!("data:image/png;base64,{}", STANDARD.encode("not an image"));
        assert!(super::tests::unseen(&text).await.contains("not a readable image"));
        let large = format!("data:image/png;base64,{}", STANDARD.encode(vec![0x89; 1001]));
        assert!(super::tests::unseen(&large).await.contains("larger"));
    }
}
