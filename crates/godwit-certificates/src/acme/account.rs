//! The account with an ACME server: made once, and kept in a file with its key.

use instant_acme::{Account, AccountCredentials, NewAccount};
use serde::{Deserialize, Serialize};

use super::Settings;
use super::client::Client;
use super::folder::{Folder, Place};
use super::problem::{Kind, Problem};
use godwit_text::plain_error;

/// The file.
#[derive(Deserialize, Serialize)]
struct Kept {
    email: Option<String>,
    credentials: AccountCredentials,
}

/// The account, which is made if there is none.
pub(super) async fn open(settings: &Settings, folder: &Folder, client: &Client) -> Result<Account, Problem> {
    let place = folder.account();
    let _lock = place.lock().await.map_err(|error| unusable(&place, &plain_error(&error)))?;
    match read(&place)? {
        Some(kept) => restore(settings, &place, client, kept).await,
        None => create(settings, &place, client).await,
    }
}

/// The account if there is one.
pub(super) async fn known(settings: &Settings, folder: &Folder, client: &Client) -> Option<Account> {
    let kept = read(&folder.account()).ok()??;
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let account = builder.from_credentials(kept.credentials).await;
    account.map_err(|error| tracing::debug!(%error, url = settings.url(), "no ACME account")).ok()
}

/// Gives up an account that the server does not know any more.
pub(super) async fn forget(folder: &Folder) {
    let place = folder.account();
    if let Ok(_lock) = place.lock().await {
        let _ = place.put_aside();
    }
}

fn read(place: &Place) -> Result<Option<Kept>, Problem> {
    let text = place.read().map_err(|error| unusable(place, &plain_error(&error)))?;
    let parse = |text: String| serde_json::from_str(&text);
    text.map(parse).transpose().map_err(|_| unusable(place, "it is damaged"))
}

async fn restore(
    settings: &Settings,
    place: &Place,
    client: &Client,
    kept: Kept,
) -> Result<Account, Problem> {
    let text = serde_json::to_value(&kept.credentials).ok();
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let account = builder.from_credentials(kept.credentials).await;
    let account = account.map_err(|error| Problem::of(&error, settings.url()))?;
    if kept.email == settings.email {
        return Ok(account);
    }
    let contact = contact(settings);
    let contact: Vec<_> = contact.iter().map(String::as_str).collect();
    account.update_contacts(&contact).await.map_err(|error| Problem::of(&error, settings.url()))?;
    if let Some(credentials) = text.and_then(|text| serde_json::from_value(text).ok()) {
        write(settings, place, credentials)?;
    }
    Ok(account)
}

async fn create(settings: &Settings, place: &Place, client: &Client) -> Result<Account, Problem> {
    let contact = contact(settings);
    let contact: Vec<_> = contact.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contact,
        terms_of_service_agreed: settings.accept_terms,
        only_return_existing: false,
    };
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let made = builder.create(&new, settings.url().to_owned(), None).await;
    let (account, credentials) = made.map_err(|error| Problem::of(&error, settings.url()))?;
    write(settings, place, credentials)?;
    Ok(account)
}

fn write(settings: &Settings, place: &Place, credentials: AccountCredentials) -> Result<(), Problem> {
    let kept = Kept { email: settings.email.clone(), credentials };
    let text = serde_json::to_string(&kept).map_err(|error| unusable(place, &error.to_string()))?;
    place.write(&text).map_err(|error| unusable(place, &plain_error(&error)))
}

fn contact(settings: &Settings) -> Vec<String> {
    settings.email.iter().map(|email| format!("mailto:{email}")).collect()
}

fn unusable(place: &Place, problem: &str) -> Problem {
    let path = place.path().display();
    let message = format!(
        "cannot keep the ACME account in {path}: {problem}; make it usable, or remove it for a new account"
    );
    Problem::new(Kind::Unreachable, message)
}
