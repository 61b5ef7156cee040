//! Fetches the images attached to a question, for agents that can read them.
//!
//! Only https, only hosts on the allowlist, only public addresses, no redirects, bounded in size
//! and time. Addresses are checked after resolution, and the connection uses the checked addresses.
//! `data:` URLs are decoded without any request.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use imagesize::ImageType;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::domain::{Attachment, ImageClaim, UnseenCause, UnseenImage};
use crate::llm::Image;

/// Maximum width and height of an image in pixels. Providers refuse larger images, and decoding one
/// takes gigabytes.
const MAX_SIDE: usize = 8000;

/// Fetches attachments within [`Bounds`].
pub struct Fetcher {
    /// Made for the first fetch, because root certificates are read for it. `None` on a machine without
    /// them, where nothing can be fetched.
    client: OnceLock<Option<reqwest::Client>>,
    bounds: Bounds,
}

/// Limits of a fetch.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Allowed hosts, in lower case.
    pub hosts: BTreeSet<String>,
    pub most_bytes: usize,
    pub timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("only https addresses are fetched")]
    Scheme,
    #[error("only the usual port of https is used")]
    Port,
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
    #[error("it is larger than {MAX_SIDE} pixels on a side")]
    TooManyPixels,
}

impl Error {
    fn cause(&self) -> UnseenCause {
        match self {
            Self::Scheme | Self::Port | Self::Host(_) => UnseenCause::AddressNotAllowed,
            Self::Unreachable | Self::Status(_) => UnseenCause::Unreachable,
            Self::TooLarge(_) | Self::TooManyPixels => UnseenCause::TooLarge,
            Self::NotAnImage => UnseenCause::NotAnImage,
        }
    }
}

impl Fetcher {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            client: OnceLock::new(),
            bounds,
        }
    }

    fn client(&self) -> Option<&reqwest::Client> {
        let client = self.client.get_or_init(|| {
            bounded(self.bounds.timeout)
                .https_only(true)
                .dns_resolver(Arc::new(PublicOnly))
                .build()
                .inspect_err(|error| tracing::warn!(%error, "attachments cannot be fetched"))
                .ok()
        });
        client.as_ref()
    }

    /// Returns the images among the attachments, and those that could not be read. The bytes decide
    /// what is an image.
    pub async fn images(&self, attachments: &[Attachment]) -> (Vec<Image>, Vec<UnseenImage>) {
        let images = attachments.iter();
        let images = images.filter(|it| it.image_claim() != ImageClaim::Other);
        let fetched = images.map(|a| async move { (a, self.image(a).await) });
        let (mut images, mut unseen) = (vec![], vec![]);
        for (attachment, result) in futures_util::future::join_all(fetched).await {
            match result {
                Ok(image) => images.push(image),
                // A file of another kind, of which the models are told the name.
                Err(Error::NotAnImage) if attachment.image_claim() == ImageClaim::Unknown => {}
                Err(_) if attachment.image_claim() == ImageClaim::Unlikely => {}
                Err(error) => unseen.push(UnseenImage::Image {
                    name: attachment.filename.clone(),
                    cause: error.cause(),
                    detail: error.to_string(),
                }),
            }
        }
        (images, unseen)
    }

    async fn image(&self, attachment: &Attachment) -> Result<Image, Error> {
        let bytes = match attachment.url.strip_prefix("data:") {
            Some(data) => {
                let (_, encoded) = data.split_once(";base64,").ok_or(Error::NotAnImage)?;
                STANDARD.decode(encoded).map_err(|_| Error::NotAnImage)?
            }
            None => self.fetch(&attachment.url).await?,
        };
        if bytes.len() > self.bounds.most_bytes {
            return Err(Error::TooLarge(self.bounds.most_bytes));
        }
        Ok(Image {
            // The type in the bytes counts, and not the one that the client declares.
            media_type: image_type(&bytes)?.to_owned(),
            base64: STANDARD.encode(&bytes).into(),
        })
    }

    async fn fetch(&self, url: &str) -> Result<Vec<u8>, Error> {
        let url = Url::parse(url).map_err(|_| Error::Scheme)?;
        if url.scheme() != "https" {
            return Err(Error::Scheme);
        }
        if url.port().is_some() {
            return Err(Error::Port);
        }
        let host = url.host_str().unwrap_or("").to_lowercase();
        if !self.bounds.hosts.contains(&host) {
            return Err(Error::Host(host));
        }
        match url.host() {
            Some(Host::Ipv4(ip)) if !is_public(ip.into()) => Err(Error::Unreachable),
            Some(Host::Ipv6(ip)) if !is_public(ip.into()) => Err(Error::Unreachable),
            _ => self.download(url).await,
        }
    }

    async fn download(&self, url: Url) -> Result<Vec<u8>, Error> {
        let client = self.client().ok_or(Error::Unreachable)?;
        let response = client.get(url).send().await;
        let response = response.map_err(|_| Error::Unreachable)?;
        if !response.status().is_success() {
            return Err(Error::Status(response.status().as_u16()));
        }
        let mut bytes = vec![];
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| Error::Unreachable)?;
            if bytes.len() + chunk.len() > self.bounds.most_bytes {
                return Err(Error::TooLarge(self.bounds.most_bytes));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

/// Returns a client without redirects, proxies and decompression, with this time limit.
/// Decompression is switched off explicitly, because other crates may enable its features.
#[allow(
    clippy::disallowed_methods,
    reason = "one of the two places that send requests to other hosts"
)]
fn bounded(timeout: Duration) -> reqwest::ClientBuilder {
    // Fails only if a crypto provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout);
    builder.no_gzip().no_brotli().no_deflate().no_zstd()
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

/// True if an address belongs to the public Internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_reserved = match v4.octets() {
                // Of this network, shared, protocol assignments, relays, benchmarks, and multicast
                // with all above it.
                [0, ..] | [100, 64..128, ..] | [192, 0, 0, _] | [192, 88, 99, _] => true,
                [198, 18 | 19, ..] | [224..=255, ..] => true,
                _ => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
            };
            !is_reserved && !v4.is_documentation()
        }
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4() {
                return is_public(IpAddr::V4(v4));
            }
            let [first, second, ..] = v6.segments();
            // Only 2000::/3 is allocated. NAT64 (64:ff9b::/96), local and link-local addresses are
            // outside of it.
            let global = (first & 0xe000) == 0x2000;
            let documentation =
                (first == 0x2001 && second == 0xdb8) || (first == 0x3fff && second < 0x1000);
            // Teredo, other protocol assignments and 6to4. They may contain an IPv4 address.
            let protocol = (first == 0x2001 && second < 0x200) || first == 0x2002;
            global && !documentation && !protocol
        }
    }
}

/// Returns the media type in an image's header, if its dimensions are within bounds. Does not
/// decode pixels.
fn image_type(bytes: &[u8]) -> Result<&'static str, Error> {
    let media_type = match imagesize::image_type(bytes) {
        Ok(ImageType::Png) => "image/png",
        Ok(ImageType::Jpeg) => "image/jpeg",
        Ok(ImageType::Gif) => "image/gif",
        Ok(ImageType::Webp) => "image/webp",
        Ok(_) | Err(_) => return Err(Error::NotAnImage),
    };
    let size = imagesize::blob_size(bytes).map_err(|_| Error::NotAnImage)?;
    if size.width == 0 || size.height == 0 {
        return Err(Error::NotAnImage);
    }
    if size.width > MAX_SIDE || size.height > MAX_SIDE {
        return Err(Error::TooManyPixels);
    }
    Ok(media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetcher() -> Fetcher {
        let hosts = [
            "cdn.example".to_owned(),
            "127.0.0.1".to_owned(),
            "localhost".to_owned(),
        ]
        .into();
        Fetcher::new(Bounds {
            hosts,
            most_bytes: 1000,
            timeout: Duration::from_secs(2),
        })
    }

    fn attachment(url: &str) -> Attachment {
        Attachment {
            filename: "a.png".into(),
            url: url.into(),
            content_type: None,
        }
    }

    async fn unseen(url: &str) -> String {
        let (_, unseen) = fetcher().images(&[attachment(url)]).await;
        unseen.iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn only_https_from_listed_hosts_with_public_addresses_is_fetched() {
        for (url, why) in [
            ("http://cdn.example/a.png", "only https"),
            ("file:///etc/passwd", "only https"),
            ("https://evil.example/a.png", "not on the list"),
            ("https://cdn.example.evil.example/a.png", "not on the list"),
            ("https://cdn.example@evil.example/a.png", "not on the list"),
            ("https://[::ffff:127.0.0.1]/a.png", "not on the list"),
            ("https://cdn.example:8443/a.png", "usual port"),
            ("https://localhost/a.png", "could not be fetched"),
            ("https://127.0.0.1/a.png", "could not be fetched"),
            ("https://127.1/a.png", "could not be fetched"),
            ("https://2130706433/a.png", "could not be fetched"),
            ("https://0x7f000001/a.png", "could not be fetched"),
        ] {
            let unseen = unseen(url).await;
            assert!(unseen.contains(why), "{url}: {unseen}");
        }
    }

    #[test]
    fn addresses_of_the_local_network_are_not_public() {
        let no = "0.0.0.0 0.1.2.3 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 \
                  172.16.0.1 192.0.0.8 192.88.99.1 192.168.0.1 198.18.0.1 203.0.113.5 224.0.0.1 \
                  240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 \
                  ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 100::1 2001::1 \
                  2001:db8::1 2002:a00:1:: 3fff::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1";
        let is_public = |address: &&str| is_public(address.parse().unwrap());
        let public: Vec<&str> = no.split(' ').filter(is_public).collect();
        assert_eq!(public, [""; 0]);
        let yes = "1.1.1.1 100.128.0.1 172.32.0.1 2606:4700::1111 2001:4860:4860::8888";
        assert!(yes.split(' ').all(|address| is_public(&address)));
    }

    #[tokio::test]
    async fn a_name_of_the_local_network_has_no_address_to_connect_to() {
        let resolve = |name: &str| PublicOnly.resolve(name.parse().unwrap());
        assert!(resolve("localhost").await.is_err());
        assert!(resolve("127.0.0.1").await.is_err());
    }

    /// Downloads with the real client settings, but also from local addresses, where a test can
    /// listen. The answer has a last piece that is sent again and again. Returns the request in
    /// lower case too.
    async fn downloaded(head: &str, body: &[u8], again: &[u8]) -> (Result<Vec<u8>, Error>, String) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a", listener.local_addr().unwrap());
        let answer = [b"HTTP/1.1 ", head.as_bytes(), b"\r\n\r\n", body].concat();
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            let read = stream.read(&mut asked).await.unwrap();
            let _ = stream.write_all(&answer).await;
            while !again.is_empty() && stream.write_all(again).await.is_ok() {}
            String::from_utf8_lossy(asked.get(..read).unwrap()).to_lowercase()
        };
        let timeout = Duration::from_secs(5);
        let bounds = Bounds {
            hosts: BTreeSet::new(),
            most_bytes: 1000,
            timeout,
        };
        let fetcher = Fetcher {
            client: OnceLock::from(Some(bounded(timeout).build().unwrap())),
            bounds,
        };
        let fetched = async move {
            // The connection is closed with the client.
            fetcher.download(Url::parse(&url).unwrap()).await
        };
        tokio::join!(fetched, served)
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let inside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        inside.set_nonblocking(true).unwrap();
        let location = inside.local_addr().unwrap();
        let head = format!("302 Found\r\ncontent-length: 0\r\nlocation: http://{location}/secret");
        let (answer, _) = downloaded(&head, b"", b"").await;
        assert!(matches!(answer, Err(Error::Status(302))));
        let nothing = inside.accept().unwrap_err();
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn packed_bytes_stay_packed_and_size_is_bounded_even_without_an_end() {
        // As large as a compressed bomb, with the same first bytes.
        let packed = [&[0x1f, 0x8b, 8, 0][..], &[7; 500]].concat();
        let head = "200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 504";
        let (answer, asked) = downloaded(head, &packed, b"").await;
        assert_eq!(answer.unwrap(), packed);
        assert!(!asked.contains("accept-encoding"), "{asked}");
        let (answer, _) = downloaded("200 OK\r\ncontent-length: 1001", &[1; 1001], b"").await;
        assert!(matches!(answer, Err(Error::TooLarge(1000))));
        let head = "200 OK\r\ntransfer-encoding: chunked";
        let (answer, _) = downloaded(head, b"", b"10\r\n0123456789abcdef\r\n").await;
        assert!(matches!(answer, Err(Error::TooLarge(1000))));
    }

    #[tokio::test]
    async fn the_header_of_an_image_is_read_and_its_sides_are_bounded() {
        let large = [&png(1, 1)[..], &[0; 1000]].concat();
        for (bytes, why) in [
            (png(8000, 1), ""),
            (png(8001, 1), "larger than 8000 pixels"),
            (png(1, u32::MAX), "larger than 8000 pixels"),
            (large, "larger than 1000 bytes"),
            (png(0, 5), "not a readable image"),
            (b"not an image".to_vec(), "not a readable image"),
            (b"\x89PNG\x01\x02".to_vec(), "not a readable image"),
            (b"\xff\xd8\xff\0".to_vec(), "not a readable image"),
            (b"GIF87".to_vec(), "not a readable image"),
        ] {
            let unseen = unseen(&data(&bytes)).await;
            assert!(unseen.contains(why), "{bytes:?}: {unseen}");
            assert_eq!(unseen.is_empty(), why.is_empty());
        }
        let gif = [&b"GIF89a"[..], &[2, 0, 3, 0, 0, 0, 0]].concat();
        let jpeg = [
            0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0, 3, 0, 2, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1,
        ];
        let webp = [
            b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0".as_slice(),
            &[0, 0, 0, 0, 1, 0, 0, 2, 0, 0],
        ]
        .concat();
        for (bytes, media_type) in [
            (&gif[..], "image/gif"),
            (&jpeg, "image/jpeg"),
            (&webp, "image/webp"),
        ] {
            assert_eq!(image_type(bytes).map_err(|e| e.to_string()), Ok(media_type));
        }
    }

    /// Returns the header of a PNG.
    fn png(width: u32, height: u32) -> Vec<u8> {
        [
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
            &width.to_be_bytes()[..],
            &height.to_be_bytes(),
            &[8, 2, 0, 0, 0],
        ]
        .concat()
    }

    fn data(bytes: &[u8]) -> String {
        format!("data:image/png;base64,{}", STANDARD.encode(bytes))
    }
}
