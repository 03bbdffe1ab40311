//! Calls of procedures: outputs, status, errors.

use thalweg_sqlserver_emulator::session::Request;
use thalweg_sqlserver_emulator::types::{Length, SqlType};
use thalweg_sqlserver_emulator::value::SqlValue;
use thalweg_sqlserver_emulator::wire::server::Options;
use tiberius::Command;
use tiberius::error::Error;

use crate::script::{client, column, error, start, works};

#[tokio::test]
async fn a_procedure_returns_rows_counts_outputs_and_a_status() {
    let (script, server) = start(Options::default(), |_, answers| {
        answers.columns(&[column("n", SqlType::Int, false)])?;
        answers.row(&[SqlValue::Int(1)])?;
        answers.done(Some(1))?;
        answers.done(Some(42))?;
        answers.status(-6)?;
        answers.output("@text", &SqlType::NVarChar(Length::Limited(4000)), &SqlValue::Text("out".into()))?;
        answers.output("@none", &SqlType::Int, &SqlValue::Null)
    })
    .await;
    let mut client = client(&server).await;
    let mut command = Command::new("dbo.proc");
    command.bind_param("@in", 5);
    command.bind_out_param("@text", "in");
    command.bind_out_param("@none", 1);
    let result = command.exec(&mut client).await.unwrap().into_command_result().await.unwrap();
    assert_eq!(result.return_code().cast_signed(), -6);
    assert_eq!(result.rows_affected(), [1, 42]);
    assert_eq!(result.try_return_value::<&str>("@text").unwrap(), Some("out"));
    assert_eq!(result.try_return_value::<i32>("@none").unwrap(), None);
    assert_eq!(result.to_query_result(0).unwrap()[0].get::<i32, _>(0), Some(1));
    let Request::Procedure { name, parameters } = script.requests().remove(0) else { panic!("a procedure") };
    assert_eq!(name, "dbo.proc");
    let outputs: Vec<_> = parameters.iter().map(|p| (p.name.as_str(), p.output)).collect();
    assert_eq!(outputs, [("@in", false), ("@text", true), ("@none", true)]);
}

#[tokio::test]
async fn an_error_reaches_the_client_and_the_connection_goes_on() {
    let (_script, server) = start(Options::default(), |request, answers| match request {
        Request::Procedure { .. } => {
            let mut missing = error(208, 16, "Invalid object name 'dbo.missing'.");
            (missing.procedure, missing.line) = ("dbo.proc".into(), 7);
            answers.message(&missing)?;
            answers.status(-1)
        }
        _ => {
            answers.message(&error(5701, 0, "Changed database context to 'x'."))?;
            crate::script::one(request, answers)
        }
    })
    .await;
    let mut client = client(&server).await;
    match client.execute("SELECT * FROM dbo.missing", &[]).await.unwrap_err() {
        Error::Server(error) => {
            assert_eq!((error.code(), error.class(), error.line()), (208, 16, 7));
            assert_eq!((error.message(), error.procedure()), ("Invalid object name 'dbo.missing'.", "dbo.proc"));
        }
        other => panic!("{other}"),
    }
    assert!(works(&mut client).await);
}

#[tokio::test]
async fn a_fatal_error_ends_the_connection() {
    let (script, server) =
        start(Options::default(), |_, answers| answers.message(&error(21, 20, "Fatal error."))).await;
    let mut client = client(&server).await;
    match client.simple_query("SELECT 1").await.err().unwrap() {
        Error::Server(error) => assert_eq!(error.class(), 20),
        other => panic!("{other}"),
    }
    script.until(|seen| seen.ended == 1).await;
}

#[tokio::test]
async fn a_result_without_rows_has_its_columns_and_several_results_come_apart() {
    let (_script, server) = start(Options::default(), |_, answers| {
        answers.columns(&[column("first", SqlType::Int, true), column("", SqlType::Date, true)])?;
        answers.done(Some(0))?;
        answers.done(Some(3))?;
        answers.columns(&[column("second", SqlType::Bit, false)])?;
        answers.row(&[SqlValue::Bit(true)])?;
        answers.done(None)
    })
    .await;
    let mut client = client(&server).await;
    let mut stream = client.simple_query("SELECT; UPDATE; SELECT").await.unwrap();
    let columns = stream.columns().await.unwrap().unwrap();
    assert_eq!(columns.iter().map(|c| c.name()).collect::<Vec<_>>(), ["first", ""]);
    let results = stream.into_results().await.unwrap();
    assert_eq!(results.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(results[1][0].get::<bool, _>("second"), Some(true));
}
